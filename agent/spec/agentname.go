package spec

// agentNameBytesMax is the longest name of an agent.
const agentNameBytesMax = 64

// IsAgentName reports whether an agent may have a name: 1 to 64 of a-z, 0-9, - and _. A name is a part of
// the names of files and of the subjects of messages.
func IsAgentName(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return name != "" && len(name) <= agentNameBytesMax
}
