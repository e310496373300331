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
	// troupe: node: there is no agent "nobody" (400)
}
