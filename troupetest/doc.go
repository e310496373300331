// Package troupetest tests programs that embed troupe. Start starts a node on logs in a temporary directory, whose
// model sends the replies of a script. Run runs a task and returns its Trace: the result, the events and the number of
// log entries, with assertions on them. CrashAt kills the node when the run has a certain number of entries, and starts
// it again on the same logs.
//
// A test of a program runs a task once, reads Trace.Entries, and then runs the task again with a crash at each of them:
//
//	for entry := 1; entry <= undisturbed.Entries; entry++ {
//		node := troupetest.Start(t, cfg, replies)
//		node.CrashAt(entry)
//		node.Run(task).AssertCompleted("12 pieces")
//	}
package troupetest
