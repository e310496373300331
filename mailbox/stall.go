package mailbox

import "time"

// Stall says that appends are not stored: no leader, no room, a broken disk, no network. The
// appends wait, or their callers do after a refusal, and nothing begins that depends on their
// entries.
type Stall struct {
	// Since is when the oldest waiting append was made, or when the first in a row of refused ones was refused; zero:
	// appends neither wait nor are refused.
	Since time.Time
	// Waiting is the number of waiting appends, Subject the target of the oldest one, and Why
	// the store's last answer to it, "" if there is none.
	Waiting int
	Subject string
	Why     string
	// Err is the error of the disk, if this process itself writes the logs; nil otherwise.
	Err error
}
