package main

func Example() {
	main()
	// Output:
	// completed, 4 agents, partial false
	// I read: Review this.
	//
	// What critic answered:
	// It holds.
	//
	// completed, 4 agents, partial false
	// I read: Review this.
	//
	// Your part: one line
	//
	// What historian answered:
	// One person wrote it, in a week.
	//
	// What critic answered:
	// It holds.
	//
	// refused, 2 agents, partial true
	// [incomplete: step 2, nobody, failed: not delegated: there is no agent "nobody" for you; the agents are: chain, historian, critic, editor; step 3, editor, was not started]
	//
	// One person wrote it, in a week.
}
