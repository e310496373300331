package main

// ofContexts lists mutants of the rules of layers and tools that change while an agent lives.
var ofContexts = []Mutant{
	{"context-never-adopted", "K5: the next request has the layers that were set", own(Always)},
	{"outdated-reservation-used", "K5: a reservation that was requested for the prompt before the change is returned", own(Never)},
	{"layers-stay-above", "K5: agents below inherit the layers that say so", []Edit{{"layers-stay-above", Replace(`s, fx := passContext(s, m, agent.ContextSet{RemoveTools: f.RemoveTools, By: f.By})`)}}},
	{"children-without-layers", "K5: agents that begin have the layers of those above", own(Drop)},
	{"removed-tool-stays-below", "K5: a tool that was taken away is gone below, too", []Edit{{"removed-tool-stays-below", Replace(`s = s.put(c)`)}}},
	{"tool-beyond-the-parent", "E6: an agent gets no tool that its parent may not use", own(Never)},
}
