package main

// cut cuts wires, as often as was asked for.
func (h *harm) cut() {}
