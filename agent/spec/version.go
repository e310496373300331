package spec

// Keys of the compared items in Task.Hashes and Resumed.Found. The key of a tool
// is ToolVersion with the tool's name, and its hash is "<class>:<hash>".
const (
	PromptVersion    = "prompt"
	PolicyVersion    = "policy" // recorded only: it reaches a run by its log alone
	HooksVersion     = "hooks"  // of the node's operator
	RouteVersion     = "route"
	WorkspaceVersion = "workspace"
	ToolVersion      = "tool/"
)

// RouteOf is the key of a model's route in the hashes of a run, which may have
// several routes.
func RouteOf(model string) string { return RouteVersion + "/" + model }
