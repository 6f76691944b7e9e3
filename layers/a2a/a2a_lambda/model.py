"""The wire types of A2A 1.0: one class a message of the specification's proto (§4, `a2a.proto`).

How presence is kept, so that the JSON is what ProtoJSON writes (§5.5–5.7):

- a field without a default is REQUIRED and always written;
- a field whose default is `UNSET` has presence (a proto message, an `optional`, one of a `oneof`): written
  exactly when it was set, also when it was set to an empty value;
- any other default is the proto's own default, and left out on output.

Which of these a request must fill, and with what, is read from these classes by `validation`.
"""

from datetime import datetime
from enum import Enum
from typing import Annotated, Any, ClassVar, Final

from msgspec import UNSET, Meta, Struct, UnsetType, field

PROTOCOL_VERSION: Final = "1.0"

MAX_ID_LENGTH: Final = 512
"""Characters in an id that a client chooses (messageId, contextId); the specification names no limit."""

MAX_HEADER_LENGTH: Final = 4096
"""Characters in what a client wants sent in a header of a notification."""

ClientId = Annotated[str, Meta(max_length=MAX_ID_LENGTH)]
HeaderText = Annotated[str, Meta(max_length=MAX_HEADER_LENGTH)]
HistoryLength = Annotated[int, Meta(ge=0)]
PageSize = Annotated[int, Meta(ge=1, le=100)]


class WireType(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The JSON mapping that all messages share: camelCase names, defaults left out (§5.5)."""


class Role(Enum):
    """Who speaks (§4.1.5). In the proto's order: a member's place, from 1, is its number."""

    USER = "ROLE_USER"
    AGENT = "ROLE_AGENT"


class TaskState(Enum):
    """The life of a task (§4.1.3). In the proto's order: a member's place, from 1, is its number."""

    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELED"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    REJECTED = "TASK_STATE_REJECTED"
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"


class Part(WireType, frozen=True):
    """A piece of content: exactly one of text, raw, url and data (§4.1.6)."""

    ONEOF: ClassVar = ("text", "raw", "url", "data")

    text: str | UnsetType = UNSET
    raw: bytes | UnsetType = UNSET
    url: str | UnsetType = UNSET
    data: Any = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    filename: str = ""
    media_type: str = ""


class Message(WireType, frozen=True):
    """One unit of communication between client and agent (§4.1.4)."""

    message_id: ClientId
    role: Role
    parts: list[Part]
    task_id: str = ""
    context_id: ClientId = ""
    metadata: dict[str, Any] | UnsetType = UNSET
    extensions: list[str] = []
    reference_task_ids: list[str] = []


class Artifact(WireType, frozen=True):
    """An output of a task (§4.1.7). Its id is unique within its task."""

    artifact_id: str
    parts: list[Part]
    name: str = ""
    description: str = ""
    metadata: dict[str, Any] | UnsetType = UNSET
    extensions: list[str] = []


class TaskStatus(WireType, frozen=True):
    """A task's state, since when (RFC 3339, UTC, milliseconds) and what was said with it (§4.1.2)."""

    state: TaskState
    message: Message | UnsetType = UNSET
    timestamp: str = ""


class Task(WireType, frozen=True):
    """The unit of work (§4.1.1). `artifacts` and `history` are UNSET where an answer leaves them out."""

    id: str
    status: TaskStatus
    context_id: str = ""
    artifacts: list[Artifact] | UnsetType = UNSET
    history: list[Message] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class TaskStatusUpdateEvent(WireType, frozen=True):
    """A task's state has changed (§4.2.1)."""

    task_id: str
    context_id: str
    status: TaskStatus


class TaskArtifactUpdateEvent(WireType, frozen=True):
    """An artifact, or with `append` more of one that was given before (§4.2.2)."""

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False


class StreamResponse(WireType, frozen=True):
    """One update of a task as subscribers and webhooks are told of it: exactly one is set (§3.2.3)."""

    ONEOF: ClassVar = ("status_update", "artifact_update")

    status_update: TaskStatusUpdateEvent | UnsetType = UNSET
    artifact_update: TaskArtifactUpdateEvent | UnsetType = UNSET


class AuthenticationInfo(WireType, frozen=True):
    """How a webhook is authenticated to: scheme and credentials of an Authorization header (§4.3.2)."""

    scheme: HeaderText
    credentials: HeaderText = ""


class TaskPushNotificationConfig(WireType, frozen=True):
    """A webhook that is told of a task's updates (§4.3.1)."""

    url: str
    tenant: str = ""
    id: ClientId = ""
    task_id: str = ""
    token: HeaderText = ""
    authentication: AuthenticationInfo | UnsetType = UNSET


class SendMessageConfiguration(WireType, frozen=True):
    """What the client wishes of an answer (§3.2.2)."""

    accepted_output_modes: list[str] = []
    task_push_notification_config: TaskPushNotificationConfig | UnsetType = UNSET
    history_length: HistoryLength | UnsetType = UNSET
    return_immediately: bool = False


class SendMessageRequest(WireType, frozen=True):
    """The parameters of SendMessage (§3.2.1)."""

    message: Message
    tenant: str = ""
    configuration: SendMessageConfiguration = SendMessageConfiguration()
    metadata: dict[str, Any] | UnsetType = UNSET


class SendMessageResponse(WireType, frozen=True):
    """The result of SendMessage: exactly one of the two is set (§3.1.1)."""

    task: Task | UnsetType = UNSET
    message: Message | UnsetType = UNSET


class GetTaskRequest(WireType, frozen=True):
    """The parameters of GetTask (§3.1.3)."""

    id: str
    tenant: str = ""
    history_length: HistoryLength | UnsetType = UNSET


class CancelTaskRequest(WireType, frozen=True):
    """The parameters of CancelTask (§3.1.5)."""

    id: str
    tenant: str = ""
    metadata: dict[str, Any] | UnsetType = UNSET


class ListTasksRequest(WireType, frozen=True):
    """The parameters of ListTasks (§3.1.4)."""

    tenant: str = ""
    context_id: str = ""
    status: TaskState | UnsetType = UNSET
    page_size: PageSize | UnsetType = UNSET
    page_token: str = ""
    history_length: HistoryLength | UnsetType = UNSET
    status_timestamp_after: datetime | UnsetType = UNSET
    """In UTC, rounded up to the microsecond."""
    include_artifacts: bool | UnsetType = UNSET


class ListTasksResponse(WireType, frozen=True):
    """The result of ListTasks (§3.1.4). All four fields are always there."""

    tasks: list[Task]
    next_page_token: str
    page_size: int
    total_size: int


class CreateTaskPushNotificationConfigRequest(WireType, frozen=True):
    """The parameters of CreateTaskPushNotificationConfig: the config, with its task (§3.1.7)."""

    task_id: str
    url: str
    tenant: str = ""
    id: ClientId = ""
    token: HeaderText = ""
    authentication: AuthenticationInfo | UnsetType = UNSET


class GetTaskPushNotificationConfigRequest(WireType, frozen=True):
    """The parameters of GetTaskPushNotificationConfig (§3.1.8)."""

    task_id: str
    id: str
    tenant: str = ""


class ListTaskPushNotificationConfigsRequest(WireType, frozen=True):
    """The parameters of ListTaskPushNotificationConfigs (§3.1.9)."""

    task_id: str
    tenant: str = ""
    page_size: Annotated[int, Meta(ge=0, le=100)] = 0
    """0 for the server's own choice: the proto knows no presence here."""
    page_token: str = ""


class ListTaskPushNotificationConfigsResponse(WireType, frozen=True):
    """The result of ListTaskPushNotificationConfigs (§3.1.9)."""

    configs: list[TaskPushNotificationConfig] = []
    next_page_token: str = ""


class DeleteTaskPushNotificationConfigRequest(WireType, frozen=True):
    """The parameters of DeleteTaskPushNotificationConfig (§3.1.10)."""

    task_id: str
    id: str
    tenant: str = ""


class Nothing(WireType, frozen=True):
    """The result of an operation that has none: `{}`."""


class AgentProvider(WireType, frozen=True):
    """Who offers the agent (§4.4.2)."""

    url: str
    organization: str


class AgentExtension(WireType, frozen=True):
    """An extension of the protocol that the agent knows (§4.4.4)."""

    uri: str = ""
    description: str = ""
    required: bool = False
    params: dict[str, Any] | UnsetType = UNSET


class AgentCapabilities(WireType, frozen=True):
    """The optional parts of the protocol that the server carries out (§4.4.3)."""

    streaming: bool | UnsetType = UNSET
    push_notifications: bool | UnsetType = UNSET
    extensions: list[AgentExtension] = []
    extended_agent_card: bool | UnsetType = UNSET


class AgentSkill(WireType, frozen=True):
    """One thing that the agent can do (§4.4.5)."""

    id: str
    name: str
    description: str
    tags: list[str]
    examples: list[str] = []
    input_modes: list[str] = []
    output_modes: list[str] = []


class AgentInterface(WireType, frozen=True):
    """An address at which the agent speaks a binding of the protocol (§4.4.6)."""

    url: str
    protocol_binding: str
    protocol_version: str
    tenant: str = ""


class APIKeySecurityScheme(WireType, frozen=True):
    """A key in a header, a query parameter or a cookie (§4.5.2)."""

    location: str
    name: str
    description: str = ""


class HTTPAuthSecurityScheme(WireType, frozen=True):
    """An authentication scheme of the Authorization header (§4.5.3)."""

    scheme: str
    description: str = ""
    bearer_format: str = ""


class OpenIdConnectSecurityScheme(WireType, frozen=True):
    """Tokens of an OpenID Connect provider, by the address of its metadata (§4.5.5)."""

    open_id_connect_url: str
    description: str = ""


class SecurityScheme(WireType, frozen=True):
    """A way to authenticate: exactly one of the kinds (§4.5.1). The other two of the proto are not offered here."""

    ONEOF: ClassVar = ("api_key_security_scheme", "http_auth_security_scheme", "open_id_connect_security_scheme")

    api_key_security_scheme: APIKeySecurityScheme | UnsetType = UNSET
    http_auth_security_scheme: HTTPAuthSecurityScheme | UnsetType = UNSET
    open_id_connect_security_scheme: OpenIdConnectSecurityScheme | UnsetType = UNSET


class StringList(WireType, frozen=True):
    """A list of strings, as the value of a map. An empty one is written as `{}`, like every empty repeated field."""

    strings: list[str] = field(default_factory=list, name="list")


class SecurityRequirement(WireType, frozen=True):
    """Schemes that a caller must use together, each with the scopes that it needs (§4.4.1)."""

    schemes: dict[str, StringList] = {}


class AgentCardSignature(WireType, frozen=True):
    """A JSON Web Signature of the card, its payload left out (§4.4.7, §8.4.2)."""

    protected: str
    signature: str
    header: dict[str, Any] | UnsetType = UNSET


class AgentCard(WireType, frozen=True):
    """The agent's public description of itself (§4.4.1, §8)."""

    name: str
    description: str
    version: str
    supported_interfaces: list[AgentInterface]
    capabilities: AgentCapabilities
    default_input_modes: list[str]
    default_output_modes: list[str]
    skills: list[AgentSkill]
    provider: AgentProvider | UnsetType = UNSET
    documentation_url: str | UnsetType = UNSET
    icon_url: str | UnsetType = UNSET
    security_schemes: dict[str, SecurityScheme] = {}
    security_requirements: list[SecurityRequirement] = []
    """Alternatives: a caller must meet one of them."""
    signatures: list[AgentCardSignature] = []
