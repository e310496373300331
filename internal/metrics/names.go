package metrics

import "github.com/prometheus/client_golang/prometheus"

// The names of the metrics, once. Those of gen_ai are the Prometheus form of the OpenTelemetry semantic
// conventions for generative AI, which are still in development (semantic-conventions 1.41.1); the others are
// troupe's own. docs/metrics.md describes them.
const (
	tokenUsage         = "gen_ai_client_token_usage"
	operationDuration  = "gen_ai_client_operation_duration_seconds"
	agentDuration      = "gen_ai_invoke_agent_duration_seconds"
	agentCalls         = "gen_ai_invoke_agent_inference_calls"
	agentToolCalls     = "gen_ai_invoke_agent_tool_calls"
	toolDuration       = "gen_ai_execute_tool_duration_seconds"
	runDuration        = "gen_ai_workflow_duration_seconds"
	firstChunk         = "gen_ai_client_operation_time_to_first_chunk_seconds"
	outputChunk        = "gen_ai_client_operation_time_per_output_chunk_seconds"
	mcpClientDuration  = "mcp_client_operation_duration_seconds"
	mcpServerDuration  = "mcp_server_operation_duration_seconds"
	delegationWait     = "troupe_delegation_queue_wait_seconds"
	logAppend          = "troupe_log_append_seconds"
	actorRestarts      = "troupe_actor_restarts_total"
	runsStarted        = "troupe_runs_started_total"
	runsFinished       = "troupe_runs_finished_total"
	runsTakenOver      = "troupe_runs_taken_over_total"
	runsRemoved        = "troupe_runs_removed_total"
	runsActive         = "troupe_runs_active"
	runsQueued         = "troupe_runs_queued"
	agentsActive       = "troupe_agents_active"
	mailboxMessages    = "troupe_actor_mailbox_messages"
	syntheticResults   = "troupe_synthetic_tool_results_total"
	agentsResting      = "troupe_agents_resting"
	turnsTotal         = "troupe_turns_total"
	delegations        = "troupe_delegations_total"
	delegationDepth    = "troupe_delegation_depth"
	budgetLimit        = "troupe_budget_tokens_limit"
	budgetReserved     = "troupe_budget_tokens_reserved"
	budgetUsed         = "troupe_budget_tokens_used_total"
	budgetDenied       = "troupe_budget_denied_total"
	costUSD            = "troupe_cost_usd_total"
	toolCalls          = "troupe_tool_calls_total"
	toolRetries        = "troupe_tool_retries_total"
	loopDetections     = "troupe_loop_detections_total"
	compactions        = "troupe_compactions_total"
	providerRequests   = "troupe_provider_requests_total"
	providerRetryAfter = "troupe_provider_retry_after_seconds"
	questionsAsked     = "troupe_questions_total"
	eventsDropped      = "troupe_events_dropped_total"
	spansExported      = "troupe_spans_exported_total"
	spansDropped       = "troupe_spans_dropped_total"
	spansWaiting       = "troupe_spans_waiting"
	logsWritable       = "troupe_logs_writable"
	nodeReady          = "troupe_node_ready"
	buildInfo          = "troupe_build_info"
)

// Labels. Runs, agent ids and texts are no labels: labels have few values, and limitValues bounds them.
const (
	labelOperation  = "gen_ai_operation_name"
	labelProvider   = "gen_ai_provider_name"
	labelModel      = "gen_ai_request_model"
	labelTokenType  = "gen_ai_token_type"
	labelAgent      = "gen_ai_agent_name"
	labelTool       = "gen_ai_tool_name"
	labelWorkflow   = "gen_ai_workflow_name"
	labelErrorType  = "error_type"
	labelMCPMethod  = "mcp_method_name"
	ownAgent        = "agent"
	ownTool         = "tool"
	ownModel        = "model"
	ownProvider     = "provider"
	ownReason       = "reason"
	ownStopReason   = "stop_reason"
	ownOutcome      = "outcome"
	ownTransition   = "transition"
	ownTier         = "tier"
	ownStage        = "stage"
	ownCode         = "code"
	ownPhase        = "phase"
	ownPath         = "path"
	ownVersion      = "version"
	ownNode         = "node"
	operationChat   = "chat"
	operationAgent  = "invoke_agent"
	operationTool   = "execute_tool"
	operationRun    = "invoke_workflow"
	tokensInput     = "input"
	tokensOutput    = "output"
	outcomeOK       = "ok"
	outcomeError    = "error"
	outcomeDenied   = "denied"
	codeOK          = "ok"
	valueOfTooMany  = "other"
	valuesMax       = 200 // of one label; later ones are valueOfTooMany
	valueBytesMax   = 64
	trackedRunsMax  = 1 << 14
	trackedAgentMax = 1 << 16
)

// Buckets of the semantic conventions.
var (
	tokenBuckets   = prometheus.ExponentialBuckets(1, 4, 14)
	secondsBuckets = prometheus.ExponentialBuckets(0.01, 2, 14)
	agentBuckets   = prometheus.ExponentialBuckets(0.1, 2, 13)
	mcpBuckets     = []float64{.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 120, 300}
	appendBuckets  = prometheus.ExponentialBuckets(0.0005, 2, 16)
	countBuckets   = []float64{0, 1, 2, 4, 8, 16, 32, 64, 128}
	depthBuckets   = []float64{0, 1, 2, 3, 4, 6, 8}
)
