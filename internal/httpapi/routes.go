package httpapi

import (
	"context"
	"net/http"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/a2aserver"
)

// tokenAPI is what one token opens: the paths for operators, or those for an owner. Each has its own shares of the streams
// and connections, so that one of them cannot use up those of the others.
type tokenAPI struct {
	cfg         Config
	access      access
	owners      []access  // of the operators' API: those of the owners
	streams     slotShare // a slot for each stream of events, and each call of another protocol
	connections slotShare // a slot for each connection; without owners there are none
	events      *eventPaths
}

// newTokenAPIs makes the API of the operators, which is the first, and those of the owners.
func newTokenAPIs(base context.Context, cfg Config) []*tokenAPI {
	n := 1 + len(cfg.Owners)
	streams := newSlotShares(StreamsMax, n)
	connections := newSlotShares(cfg.limits.connections-cfg.limits.unproven, n)
	if n == 1 {
		connections = make([]slotShare, 1)
	}
	newAPI := func(i int, cfg Config) *tokenAPI {
		return &tokenAPI{cfg: cfg, access: newAccess(cfg), streams: streams[i], connections: connections[i], events: newEventPaths(base, cfg.Client, streams[i])}
	}
	apis := []*tokenAPI{newAPI(0, cfg)}
	for i, o := range cfg.Owners {
		apis = append(apis, newAPI(i+1, cfg.forOwner(o)))
		apis[0].owners = append(apis[0].owners, apis[i+1].access)
	}
	return apis
}

// newGuard is the whole surface: each path below it checks access first.
func newGuard(apis []*tokenAPI) http.Handler {
	var doors []door
	for _, a := range apis {
		mux := a.newMux()
		doors = append(doors, door{a.access, mux, countConnection(a.connections, mux)})
	}
	return guard(doors)
}

// newMux serves the paths for those who have the token.
func (a *tokenAPI) newMux() http.Handler {
	mux := http.NewServeMux()
	for _, r := range a.routes() {
		mux.Handle(r.method+" "+r.path, r.handler)
	}
	mux.HandleFunc("GET /{$}", a.access.servePage)
	mux.HandleFunc("GET "+pathAssets+"{name}", serveAsset)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { refuseUnknownPath(mux, w, r) })
	return refuseNeedlessBody(mux)
}

// route is one path of the server.
type route struct {
	method, path string
	handler      http.HandlerFunc
}

func (a *tokenAPI) routes() []route {
	const run = "/api/v1/runs/{id}"
	c := a.cfg.Client
	runs, commands, schedules := runPaths{c}, commandPaths{c}, client.Schedules{Client: c}
	sessions, chat := sessionPaths{a.access, a.owners}, chatPaths{c, a.cfg.Agents, a.streams, a.cfg.Logger}
	withRun := func(handle runHandler) http.HandlerFunc { return withRun(c, handle) }
	list := []route{
		{"GET", pathHealth, answerProbe(a.access, a.cfg.Alive)},
		{"GET", pathReady, answerProbe(a.access, a.cfg.Ready)},
		{"GET", "/api/v1/runs", runs.listRuns},
		{"POST", "/api/v1/runs", runs.startRun},
		{"GET", run, withRun(runs.getRun)},
		{"GET", run + "/tree", withRun(runs.getTree)},
		{"GET", run + "/result", withRun(runs.getResult)},
		{"GET", run + "/budget", withRun(runs.getBudget)},
		{"GET", run + "/policy", withRun(runs.getPolicy)},
		{"GET", run + "/timeline", withRun(runs.getTimeline)},
		{"GET", run + "/report", withRun(runs.getReport)},
		{"GET", run + "/audit", withRun(runs.getAudit)},
		{"GET", run + "/transcript", withRun(runs.getTranscript)},
		{"GET", run + "/questions", withRun(runs.getQuestions)},
		{"GET", run + "/events", withRun(a.events.getEvents)},
		{"GET", run + "/logs", withRun(getLogs(c))},
		{"GET", run + "/comparison", withRun(getComparison(c))},
		{"POST", run + "/cancel", withRun(commands.cancelRun)},
		{"POST", run + "/steer", withRun(commands.steerRun)},
		{"POST", run + "/answer", withRun(commands.answerQuery)},
		{"POST", run + "/budget", withRun(commands.changeBudget)},
		{"POST", run + "/policy", withRun(commands.setPolicy)},
		{"GET", run + "/context", withRun(getContext(c))},
		{"POST", run + "/context", withRun(setContext(c))},
		{"GET", run + "/permissions", withRun(getPermissions(c))},
		{"POST", run + "/permissions", withRun(narrowPermissions(c))},
		{"GET", run + "/backlog", withRun(getBacklog(c))},
		{"POST", run + "/backlog", withRun(changeBacklog(c))},
		{"GET", "/api/v1/conversations", listConversations(c)},
		{"GET", pathConversation, getConversation(c)},
		{"DELETE", pathConversation, deleteConversation(c)},
		{"POST", pathConversation + "/lane", changeLane(c)},
		{"GET", "/api/v1/schedules", listSchedules(schedules)},
		{"GET", "/api/v1/schedules/{id}", getSchedule(schedules)},
		{"DELETE", "/api/v1/schedules/{id}", deleteSchedule(schedules)},
		{"GET", "/api/v1/questions", listQuestions(c)},
		{"GET", "/api/v1/nodes", listNodes(c)},
		{"GET", "/api/v1/cluster", getCluster(c)},
		{"POST", "/api/v1/nodes/{node}/drain", drainNode(c)},
		{"GET", "/api/v1/agents", listAgents(a.cfg.Agents)},
		{"POST", pathTickets, sessions.createTicket},
		{"POST", pathSessions, sessions.createSession},
		{"GET", "/api/v1/openapi.json", serveDocument},
		{"POST", "/v1/chat/completions", chat.completeChat},
		{"GET", "/v1/models", chat.listModels},
		{"GET", "/v1/models/{model}", chat.getModel},
	}
	if a.cfg.Metrics != nil {
		list = append(list, route{"GET", "/metrics", a.cfg.Metrics.ServeHTTP})
	}
	if a.cfg.MCP != nil {
		list = append(list, route{"POST", "/mcp", passOn(a.streams, requireMessages(a.cfg.MCP))})
	}
	if a.cfg.A2A != nil {
		list = append(list, route{"GET", a2aserver.CardPath, a.cfg.A2A.ServeHTTP}, route{"GET", a2aserver.NodeCardPath, a.cfg.A2A.ServeHTTP}, route{"POST", a2aserver.Path, passOn(a.streams, a.cfg.A2A)})
	}
	return list
}
