// An agent in the official SDK of A2A for npm. It prints its address.
import express from 'express';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import { Role, TaskState } from '@a2a-js/sdk';

const part = (text) => ({ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' });
const artifact = (text) => ({ artifactId: 'a', name: '', description: '', parts: [part(text)], metadata: undefined, extensions: [] });

class Reviewer {
  waiting = new Map();

  async execute(context, bus) {
    const { taskId, contextId } = context;
    const task = context.userMessage.parts[0].content.value;
    const status = (state, text) => AgentEvent.statusUpdate({ taskId, contextId, metadata: undefined, status: { state, timestamp: new Date().toISOString(), message: text && {
      messageId: 'm', contextId, taskId, role: Role.ROLE_AGENT, parts: [part(text)], metadata: undefined, extensions: [], referenceTaskIds: [] } } });
    const piece = (text, append) => bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact: artifact(text), append, lastChunk: false, metadata: undefined }));
    bus.publish(AgentEvent.task({ id: taskId, contextId, status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: undefined }, artifacts: [], history: [], metadata: undefined }));
    bus.publish(status(TaskState.TASK_STATE_WORKING, 'Looking.'));
    piece('A is', false);
    if (task.includes('hang')) {
      await new Promise((resolve) => this.waiting.set(taskId, resolve));
      console.log('canceled');
      bus.publish(status(TaskState.TASK_STATE_CANCELED));
    } else if (task.includes('fail')) {
      bus.publish(status(TaskState.TASK_STATE_FAILED, 'no disk'));
    } else {
      piece(' safe.', true);
      bus.publish(status(TaskState.TASK_STATE_COMPLETED));
    }
    bus.finished();
  }

  cancelTask = async (taskId) => this.waiting.get(taskId)?.();
}

const app = express();
const server = app.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const card = { name: 'reviewer', description: 'Reviews.', version: '1', provider: undefined, capabilities: { streaming: true, extensions: [] }, securitySchemes: {}, securityRequirements: [],
    supportedInterfaces: [{ url: url + '/rpc', protocolBinding: 'JSONRPC', tenant: '', protocolVersion: '1.0' }], defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'], skills: [], signatures: [] };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Reviewer());
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  console.log(url);
});
