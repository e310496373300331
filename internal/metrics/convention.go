package metrics

// conventionMetrics are the names and units of the semantic conventions, by the names for Prometheus.
var conventionMetrics = map[string]struct{ name, unit string }{
	tokenUsage:        {"gen_ai.client.token.usage", "{token}"},
	operationDuration: {"gen_ai.client.operation.duration", "s"},
	agentDuration:     {"gen_ai.invoke_agent.duration", "s"},
	agentCalls:        {"gen_ai.invoke_agent.inference_calls", "{inference_call}"},
	agentToolCalls:    {"gen_ai.invoke_agent.tool_calls", "{tool_call}"},
	toolDuration:      {"gen_ai.execute_tool.duration", "s"},
	runDuration:       {"gen_ai.workflow.duration", "s"},
	firstChunk:        {"gen_ai.client.operation.time_to_first_chunk", "s"},
	outputChunk:       {"gen_ai.client.operation.time_per_output_chunk", "s"},
	mcpClientDuration: {"mcp.client.operation.duration", "s"},
	mcpServerDuration: {"mcp.server.operation.duration", "s"},
}

// conventionLabels are the attributes of the semantic conventions, by the labels for Prometheus.
var conventionLabels = map[string]string{
	labelOperation: "gen_ai.operation.name",
	labelProvider:  "gen_ai.provider.name",
	labelModel:     "gen_ai.request.model",
	labelTokenType: "gen_ai.token.type",
	labelAgent:     "gen_ai.agent.name",
	labelTool:      "gen_ai.tool.name",
	labelWorkflow:  "gen_ai.workflow.name",
	labelErrorType: "error.type",
	labelMCPMethod: "mcp.method.name",
}

// ConventionMetric returns the name and the unit of a metric in the semantic conventions. A metric that they lack keeps
// its name.
func ConventionMetric(name string) (convention, unit string) {
	if c, ok := conventionMetrics[name]; ok {
		return c.name, c.unit
	}
	return name, ""
}

// ConventionLabel returns the attribute of the semantic conventions for a label. A label that they lack keeps its name.
func ConventionLabel(label string) string {
	if c, ok := conventionLabels[label]; ok {
		return c
	}
	return label
}
