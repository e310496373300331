// A client in the official SDK of A2A for npm: it sends, streams, gets and cancels tasks of the agent at URL, and prints what it got.
import { randomUUID } from 'node:crypto';
import { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { Role, TaskState } from '@a2a-js/sdk';

const [url, token, slow] = process.argv.slice(2);
const fetchImpl = (at, options = {}) => {
  const headers = new Headers(options.headers);
  headers.set('Authorization', `Bearer ${token}`);
  return fetch(at, { ...options, headers });
};
const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
  transports: [new JsonRpcTransportFactory({ fetchImpl })],
  cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
}));
const message = (text) => ({
  tenant: '', metadata: undefined, configuration: undefined,
  message: { messageId: randomUUID(), contextId: '', taskId: '', role: Role.ROLE_USER, metadata: undefined, extensions: [], referenceTaskIds: [],
    parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }] },
});
const textOf = (artifacts) => artifacts.flatMap((a) => a.parts).map((p) => p.content.value).join('');

const out = {};
const client = await factory.createFromUrl(url + '/.well-known/agent-card.json', '');
out.card = (await client.getAgentCard()).name;
const sent = await client.sendMessage(message('A'));
out.sent = [TaskState[sent.status.state], textOf(sent.artifacts)];
out.got = TaskState[(await client.getTask({ tenant: '', id: sent.id })).status.state];
let text = '', last = '';
for await (const e of client.sendMessageStream(message('B'))) {
  if (e.payload.$case === 'artifactUpdate') text = (e.payload.value.append ? text : '') + textOf([e.payload.value.artifact]);
  if (e.payload.$case === 'statusUpdate') last = TaskState[e.payload.value.status.state];
}
out.streamed = [last, text];
const other = await factory.createFromUrl(slow + '/.well-known/agent-card.json', '');
for await (const e of other.sendMessageStream(message('C'))) {
  if (e.payload.$case === 'task') out.canceled = TaskState[(await other.cancelTask({ tenant: '', id: e.payload.value.id, metadata: undefined })).status.state];
  if (e.payload.$case === 'statusUpdate') out.ended = TaskState[e.payload.value.status.state];
}
try {
  await client.getTask({ tenant: '', id: '01jzzzzzzzzzzzzzzzzzzzzzzz' });
} catch (e) {
  out.unknown = e.name;
}
console.log(JSON.stringify(out));
