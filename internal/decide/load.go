package decide

import (
	"fmt"

	"gcsup/backoff"
	"gcsup/internal/breaker"
	"gcsup/session"
)

// Load is what a reply shows about the load of the service.
type Load int

// The values of Load.
const (
	LoadUnknown     Load = iota // no reply, or one that shows nothing about the load
	LoadAccepted                // any other answer of the service, a refusal included
	LoadTooFast                 // refused because there are too many requests, not only for one object
	LoadUnavailable             // 503: the service is overloaded, or redistributes its load
)

// String returns the name of l, such as "too fast".
func (l Load) String() string {
	names := [...]string{"unknown", "accepted", "too fast", "unavailable"}
	if l < 0 || int(l) >= len(names) {
		return fmt.Sprintf("Load(%d)", int(l))
	}
	return names[l]
}

// LoadOf returns what a reply shows about the load of the service. The limit of an
// object, and a quota that is exhausted for today, concern other requests as little as a missing
// permission does.
func LoadOf(r *session.Reply) Load {
	transient := backoff.Status(r.Status, r.Reason) == backoff.Transient
	switch {
	case r.Status == 503:
		return LoadUnavailable
	case r.Status == 0, r.Status == 408, r.Status >= 500, r.Redirect != "", r.FromProxy() && !transient:
		return LoadUnknown
	case transient && r.Reason != "quotaExceeded" && !breaker.ObjectRateLimit(r.Status, r.Reason, r.Message):
		return LoadTooFast
	}
	return LoadAccepted
}
