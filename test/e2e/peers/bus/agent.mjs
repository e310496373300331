// An agent in nats.js, a micro service of the Synadia Agent Protocol: it answers in two chunks, and asks if the task is to ask.
import { Svcm } from '@nats-io/services';
import { connect, createInbox } from '@nats-io/transport-node';

const [url] = process.argv.slice(2);
const nc = await connect({ servers: url });
const service = await new Svcm(nc).add({
  name: 'agents', version: '1.0.0', description: 'Reviews.',
  metadata: { agent: 'nats-js', owner: 'derek', session: 'reviewer', protocol_version: '0.3' },
});
const chunk = (type, data) => JSON.stringify({ type, data });
service.addEndpoint('prompt', {
  subject: 'agents.prompt.nats-js.derek.reviewer', queue: 'agents', metadata: { max_payload: '1MB', attachments_ok: 'false' },
  handler: async (err, m) => {
    const task = m.json().prompt;
    m.respond(chunk('status', 'ack'));
    if (task === 'ask') {
      m.respond(chunk('query', { id: 'q-1', reply_subject: createInbox(), prompt: 'Which one?' }));
      return; // it waits for an answer that nobody gives
    }
    m.respond(chunk('response', `${task} It `));
    m.respond(chunk('response', 'is safe.'));
    m.respond('');
  },
});
service.addEndpoint('status', {
  subject: 'agents.status.nats-js.derek.reviewer', queue: 'agents',
  handler: (err, m) => m.respond('{}'),
});
await nc.flush();
console.log('ready');
