// The official client of OpenAI for npm asks an agent of the node at URL, as a whole and as a stream, and prints what it got.
import OpenAI from 'openai';

const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const messages = [{ role: 'user', content: 'Is it safe?' }];
const out = { models: false, streamed: '' };
for await (const m of client.models.list()) out.models ||= m.id === 'coordinator';
const whole = await client.chat.completions.create({ model: 'assistant', messages });
out.whole = [whole.choices[0].message.content, whole.choices[0].finish_reason, whole.usage.total_tokens > 0];
for await (const c of await client.chat.completions.create({ model: 'assistant', messages, stream: true })) {
  out.streamed += c.choices[0]?.delta.content ?? '';
  out.finish = c.choices[0]?.finish_reason ?? out.finish;
}
try {
  await client.chat.completions.create({ model: 'nobody', messages });
} catch (err) {
  out.unknown = [err instanceof OpenAI.NotFoundError, err.status];
}
try {
  await new OpenAI({ baseURL, apiKey: 'wrong', maxRetries: 0 }).models.list();
} catch (err) {
  out.wrong = err instanceof OpenAI.AuthenticationError;
}
console.log(JSON.stringify(out));
