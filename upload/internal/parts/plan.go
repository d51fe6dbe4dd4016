package parts

import (
	"slices"
	"strings"

	"gcsup/session/state"
	"gcsup/upload/internal/connections"
)

// Plan is how a new upload of a file is sent. The zero value is one connection, with nothing to report.
type Plan struct {
	Way   Way
	Parts *state.Parts // of Multipart and Compose, otherwise nil
	Why   Reasons      // of OneConnection, or why a Multipart is no Compose, which would come first
	next  step         // the rest counts only if it is planned
}

// Way is how a file is sent, and how its parts are joined.
type Way int8

const (
	OneConnection Way = iota
	Measured          // over one connection, whose first bytes show whether that is fast enough
	Multipart         // in parts of a multipart upload, which is started
	Compose           // in temporary objects
)

// Reasons are why a file is sent over one connection.
type Reasons []string

// String returns the text for events.
func (r Reasons) String() string { return strings.Join(r, "; ") }

// and returns r with a further reason, unless r has it.
func (r Reasons) and(why string) Reasons {
	if slices.Contains(r, why) {
		return r
	}
	return append(slices.Clip(r), why)
}

// facts are what a plan depends on.
type facts struct {
	divisible   bool // the file is large enough
	need        connections.Need
	suffices    string // why one connection suffices
	destination readable
	free        chance      // of a compose that comes first, because it costs nothing
	multipart   chance      // of a multipart upload
	compose     chance      // of any other compose
	refused     Reasons     // why there is no chance
	ready       state.Parts // of the chance that is ready
}

// readable tells whether the object at the destination can be read. Without it, an object that a request with a
// lost reply made could not be recognized.
type readable int8

const (
	unread readable = iota
	readIt
	unreadable
)

// chance is what is known of a way to join the parts.
type chance int8

const (
	none chance = iota
	untried
	ready // the parts can be sent
)

// A step finds out a fact.
type step int8

const (
	planned         step = iota // no further fact is needed
	readDestination             // finds out facts.destination, and then facts.free
	tryFree                     // finds out facts.free
	tryMultipart                // finds out facts.multipart
	tryCompose                  // finds out facts.compose
)

// choosePlan returns the plan, or the step that finds out what it depends on. The first row that applies counts:
//
//	the file is small                                one connection
//	no way supports the settings of the object       one connection, for these reasons
//	one connection suffices                          one connection, for this reason
//	its rate is not known                            one connection, whose first bytes are measured
//	the destination is not read                      read it
//	it cannot be read                                one connection, for this reason
//	a compose may be free                            try it
//	a free compose is ready                          compose
//	a multipart upload may be possible               try it
//	a multipart upload is ready                      multipart upload
//	a compose may be possible                        try it
//	a compose is ready                               compose
//	otherwise                                        one connection, for all reasons
func choosePlan(f facts) Plan {
	switch {
	case !f.divisible:
		return Plan{}
	case f.multipart == none && f.compose == none:
		return Plan{Why: f.refused}
	case f.need == connections.One:
		return Plan{Why: Reasons{f.suffices}}
	case f.need == connections.Unmeasured:
		return Plan{Way: Measured}
	case f.destination == unread:
		return Plan{next: readDestination}
	case f.destination == unreadable:
		return Plan{Why: Reasons{"the object at the destination cannot be read"}}
	case f.free == untried:
		return Plan{next: tryFree}
	case f.free == ready:
		return Plan{Way: Compose, Parts: &f.ready}
	case f.multipart == untried:
		return Plan{next: tryMultipart}
	case f.multipart == ready:
		return Plan{Way: Multipart, Parts: &f.ready, Why: f.refused}
	case f.compose == untried:
		return Plan{next: tryCompose}
	case f.compose == ready:
		return Plan{Way: Compose, Parts: &f.ready}
	}
	return Plan{Why: f.refused}
}
