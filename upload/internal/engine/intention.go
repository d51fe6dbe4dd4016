package engine

import (
	"crypto/rand"
	"sync"

	"gcsup/internal/bucket"
	"gcsup/session"
)

// intention is the ID of what an upload tries to achieve next, for
// [session.Client.WithIntention]. A request has the same idempotency token until it
// succeeds. Requests that differ have different tokens in any case.
type intention struct {
	mu sync.Mutex
	id string // "" if the next request needs a new one
}

// current returns the ID for the next request.
func (i *intention) current() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.id == "" {
		i.id = rand.Text()
	}
	return i.id
}

// learn ends the intention if r is the reply to a request that succeeded. If the same
// request is made later, for example because the session was lost or its last request did
// not finish the object, the service must execute it.
func (i *intention) learn(r session.Reply) {
	switch r.Op {
	case session.OpStart, session.OpPut, session.OpFinalize, session.OpInsert, bucket.OpCompose:
		if !r.Open() && r.URI.IsZero() && r.Object == nil {
			return // it failed, or its outcome is unknown
		}
		i.mu.Lock()
		i.id = ""
		i.mu.Unlock()
	}
}
