// Package control is what a node does for its clients and for runs besides running agents: the control service on NATS
// (`troupe.cmd.<verb>`), the index of runs, and the queries that read logs. How an agent goes on is decided by the
// machines, from the log: for a live run this package appends commands and replays logs. It decides itself:
//
//   - whether a run is opened, continued, restored or forked, and when a conversation or a schedule begins its next one
//   - which logs are removed: by a delete, by prune, by age or for room
//   - who may ask: owners see and change their own runs only
//   - how agents are canceled that their supervisor does not reach
//
// The packages below:
//   - fairqueue, buildslots, bounds, workgroup: the order of requests; the turns of builds; limits of requests; the
//     goroutines of the service
//   - runindex: the index of runs, and the callers that wait for them
//   - runlog: what logs say, by a replay; the logs of conversations and schedules, which belong to no actor
//   - retention: which run goes next, by its age or for room
//   - runimport: runs from files, and forks of a tree
//   - runevent: the events of runs again, from their logs
//   - runview: one run or many, by rows and by what their logs have since
//   - schedules: schedules for clients, and their runs when they are due
//
// The files:
//   - control.go, requests.go, decode.go, refusal.go, parts.go: the service, the forms of requests and their errors; the
//     parts that serve the verbs
//   - owners.go, agentcaller.go: whose a run is
//   - list.go: the lists of the index
//   - findrun.go, views.go, describe.go, viewer.go: one run, by its id
//   - events.go, logs.go, transcript.go: events, entries and messages again
//   - open.go, build.go, reopen.go, dryrun.go, queue.go, localrun.go, room.go, runlocks.go: opening runs, and waiting for them
//   - history.go, uploads.go, attach.go: histories and files with which runs begin
//   - commander.go, answers.go, approvals.go, storedanswers.go, context.go, backlog.go, permissions.go, subtreelimit.go,
//     handoff.go: commands for live runs
//   - repeats.go: requests whose id was used before
//   - questions.go, questioncontext.go, findquestion.go, lostcalls.go: open questions
//   - stops.go, damaged.go: cancels, through the supervisor or without it
//   - delete.go, prune.go, retaining.go: the removal of runs
//   - lanes.go, lanelogs.go, lanevisits.go, conversations.go: conversations
//   - imports.go, schedules.go: what packages runimport and schedules need of the others
//   - nodes.go, inspect.go, loghealth.go, nodeevents.go: nodes, their logs and their events
//   - schema.go, schemas/: the JSON Schemas of events
package control
