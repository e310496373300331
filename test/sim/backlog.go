package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	backlogEvery = 5 // which of the seeds share a backlog: see permissionsEvery
	backlogAt    = 2
	backlogSteps = 31 // between two changes by a person
	backlogIDs   = 7
)

// drawBacklog lets the agents of the run share a backlog. Not all of them may do all with it.
func drawBacklog(d dice, o *supervisor.Opened) {
	o.Tools = append(slices.Clip(o.Tools), agent.BacklogTools()...)
	o.Definitions[2].Tools = append(slices.Clip(o.Definitions[2].Tools), "backlog_claim", "backlog_done")
	o.Limits.Backlog, o.Limits.LeaseMS = oneOf(d, 0, 3, backlogIDs), int64(oneOf(d, 0, 10, 60, 600))
}

// drawBacklogCall is a call of a tool of the backlog.
func (fm *fakeModel) drawBacklogCall() model.ToolCall {
	task := ""
	if fm.percent(25) {
		task = `"task":"t` + itoa(fm.between(1, backlogIDs)) + `"`
	}
	and := func(rest string) string {
		if task == "" {
			return "{" + rest + "}"
		}
		return "{" + task + "," + rest + "}"
	}
	switch oneOf(fm.dice, "post", "claim", "claim", "claim", "done", "done", "return", "list") {
	case "post":
		return model.ToolCall{Name: "backlog_post", Args: `{"title":"` + oneOf(fm.dice, "sweep", "sweep", "cook", "") + itoa(fm.step) + `"}`}
	case "claim":
		return model.ToolCall{Name: "backlog_claim", Args: "{" + task + "}"}
	case "done":
		return model.ToolCall{Name: "backlog_done", Args: and(`"result":"swept"`)}
	case "return":
		return model.ToolCall{Name: "backlog_return", Args: and(`"why":"too hard"`)}
	}
	return model.ToolCall{Name: "backlog_list", Args: "{" + task + "}"}
}

// changeBacklog adds a task, or drops one, for a person.
func (in *injector) changeBacklog() {
	st := in.population.super.shadow.super.State
	if st.Phase != supervisor.Live || in.population.super.damaged {
		return
	}
	f := supervisor.BacklogSet{Request: "person-" + itoa(in.step), Title: "mend", By: "ann"}
	if in.percent(30) {
		f.Title, f.Drop = "", "t"+itoa(in.between(1, backlogIDs))
	}
	in.store.appendCommand(in.population.super, f.Kind(), f)
}
