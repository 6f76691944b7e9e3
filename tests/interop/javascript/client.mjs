// The official JavaScript client, driven line by line: {operation, params} in, {result} or {error} out.
// What it is connected to stands in the first line: {origin, interface, headers, apiKey}.

import { createInterface } from 'node:readline';
import {
  AgentCard,
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  ListTasksRequest,
  ListTasksResponse,
  Message,
  SendMessageRequest,
  Task,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk';
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  createAuthenticatingFetchWithRetry,
} from '@a2a-js/sdk/client';
import { A2AError } from '@a2a-js/sdk/errors';

const operations = {
  SendMessage: async (client, params) => {
    const sent = await client.sendMessage(SendMessageRequest.fromJSON(params));
    return 'messageId' in sent ? { message: Message.toJSON(sent) } : { task: Task.toJSON(sent) };
  },
  GetTask: async (client, params) => Task.toJSON(await client.getTask(GetTaskRequest.fromJSON(params))),
  ListTasks: async (client, params) =>
    ListTasksResponse.toJSON(await client.listTasks(ListTasksRequest.fromJSON(params))),
  CancelTask: async (client, params) => Task.toJSON(await client.cancelTask(CancelTaskRequest.fromJSON(params))),
  CreateTaskPushNotificationConfig: async (client, params) =>
    TaskPushNotificationConfig.toJSON(
      await client.createTaskPushNotificationConfig(TaskPushNotificationConfig.fromJSON(params)),
    ),
  GetTaskPushNotificationConfig: async (client, params) =>
    TaskPushNotificationConfig.toJSON(
      await client.getTaskPushNotificationConfig(GetTaskPushNotificationConfigRequest.fromJSON(params)),
    ),
  ListTaskPushNotificationConfigs: async (client, params) =>
    ListTaskPushNotificationConfigsResponse.toJSON(
      await client.listTaskPushNotificationConfig(ListTaskPushNotificationConfigsRequest.fromJSON(params)),
    ),
  DeleteTaskPushNotificationConfig: async (client, params) => {
    await client.deleteTaskPushNotificationConfig(DeleteTaskPushNotificationConfigRequest.fromJSON(params));
    return {};
  },
};

function fetchWith(headers, apiKey) {
  const fetchImpl = (url, init) => {
    const all = new Headers(init?.headers);
    Object.entries(headers).forEach(([name, value]) => all.set(name, value));
    return fetch(url, { ...init, headers: all });
  };
  if (!apiKey) {
    return fetchImpl;
  }
  return createAuthenticatingFetchWithRetry(fetchImpl, {
    headers: async () => ({ 'x-api-key': apiKey }),
    shouldRetryWithHeaders: async () => undefined,
  });
}

async function connect({ origin, interface: changes, headers, apiKey }) {
  const card = await new DefaultAgentCardResolver().resolve(origin);
  const fetched = AgentCard.toJSON(card);
  Object.assign(card.supportedInterfaces[0], changes);
  const transports = [new JsonRpcTransportFactory({ fetchImpl: fetchWith(headers, apiKey) })];
  const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports }));
  return [fetched, await factory.createFromAgentCard(card)];
}

async function outcome(action) {
  try {
    return { result: await action() };
  } catch (error) {
    if (!(error instanceof A2AError)) {
      throw error;
    }
    return { error: { name: error.name.replace(/^JsonRpc/, ''), message: error.message, data: error.data } };
  }
}

const write = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

let client;
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (client) {
    write(await outcome(() => operations[request.operation](client, request.params)));
  } else {
    let card;
    [card, client] = await connect(request);
    write({ result: card });
  }
}
