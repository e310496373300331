// Package keeper is the main function of a keeper: a process that starts one program, kills all processes that the
// program has started, whatever their group or session, and kills the program too when the process that asked for it is
// gone. A keeper is this very binary, started as Name: every program that links this package can be its own keeper.
//
// A keeper also starts what needs namespaces of its own. A process with a new user namespace begins with a copy of its
// parent's page tables, and each page that the parent writes to afterwards costs a fault: a keeper has few pages, a
// node may have gigabytes.
//
// A node starts a keeper for each command of an agent, so its start must be cheap. Go initializes packages in the order
// of their paths once their imports are ready, and most packages wait for strconv or strings. This package imports
// neither, nor anything that does: it is initialized, and the keeper runs, before them. See TestInitIsEarly.
package keeper

import "time"

// Name is the name under which a keeper starts.
const Name = "troupe-keeper"

// TermGrace is how long a program may take to end after SIGTERM.
const TermGrace = time.Second
