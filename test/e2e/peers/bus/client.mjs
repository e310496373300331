// A client in nats.js: it discovers the agents of a node, prompts one, answers its question, starts, lists and stops a
// session, follows events, and prints what it got.
import { Svcm } from '@nats-io/services';
import { connect, createInbox } from '@nats-io/transport-node';

const [url, user, pass, inboxPrefix] = process.argv.slice(2);
const nc = await connect({ servers: url, user, pass, inboxPrefix });
const out = {};

const found = [];
for await (const info of await new Svcm(nc).client().info('agents')) found.push(info);
const assistant = found.find((i) => i.metadata.session === 'assistant');
out.agents = found.map((i) => i.metadata.session).sort();
out.protocol = assistant.metadata.protocol_version;
const endpoint = assistant.endpoints.find((e) => e.name === 'prompt');
out.queue = endpoint.queue_group;

// prompt sends a prompt and returns the chunks and the error of the reply.
async function prompt(subject, payload) {
  const reply = createInbox(inboxPrefix);
  const sub = nc.subscribe(reply);
  nc.publish(subject, payload, { reply });
  const got = { types: [], text: '', error: '' };
  for await (const m of sub) {
    if (m.data.length === 0 && !m.headers) break;
    if (m.headers?.get('Nats-Service-Error-Code')) {
      got.error = m.headers.get('Nats-Service-Error-Code') + ' ' + m.json().error;
      continue;
    }
    const c = m.json();
    got.types.push(c.type);
    if (c.type === 'response') got.text += c.data;
    if (c.type === 'query') nc.publish(c.data.reply_subject, 'the red one');
  }
  sub.unsubscribe();
  return got;
}
const events = nc.subscribe('troupe.evt.>');
const first = await prompt(endpoint.subject, 'Buy one');
out.prompt = [first.types[0], first.types.includes('query'), first.text];
out.malformed = (await prompt(endpoint.subject, '{"prompt":1}')).error;
for await (const e of events) {
  if (e.json().kind === 'run.finished') break;
}
out.events = true;

const control = (verb, payload) => nc.request(`agents.${verb}.troupe.ops.control`, payload, { timeout: 15_000 }).then((m) => m.json());
const spawned = await control('spawn', '{"session_id":"shop"}');
out.session = [(await control('list', '')).sessions.map((s) => s.session_id), (await prompt(spawned.subject, 'Buy one')).text];
out.status = (await nc.request(spawned.status_subject, '')).json().session;
out.stopped = await control('stop', '{"session_id":"shop"}');
out.unknown = (await control('stop', '{"session_id":"shop"}')).error;
console.log(JSON.stringify(out));
await nc.close();
