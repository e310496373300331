package agent

// recalled takes messages of an earlier history, before the task.
func recalled(s State, f Recalled) (State, []Effect) {
	if s.Phase != "" {
		return s, nil
	}
	for _, m := range f.Messages {
		s = s.say(m)
	}
	return s, nil
}
