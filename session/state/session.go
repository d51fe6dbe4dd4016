package state

import (
	"errors"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// Session is a session and what is known of it. Its offsets are those of a file, or of one
// part.
type Session struct {
	URI         session.URI        `json:"-"`                     // a secret, see Encode; zero before the session was started
	Created     time.Time          `json:"created,omitzero"`      // when the session was started
	Committed   int64              `json:"committed,omitempty"`   // committed offset when the saved upload was saved
	HighWater   int64              `json:"high_water,omitempty"`  // end of the bytes that were ever sent in this session
	Checkpoints []chunk.Checkpoint `json:"checkpoints,omitempty"` // CRC32C of prefixes of the bytes, ascending
	Restarts    int                `json:"restarts,omitempty"`    // earlier sessions of these bytes that were lost

	// RejectedAt is 1 + the offset at which the service refused data in this
	// session although the session existed; 0 if it never did.
	RejectedAt int64 `json:"rejected_at,omitempty"`
}

// sound checks the invariants of a session of size bytes.
func (s *Session) sound(size int64) error {
	if s.Committed < 0 || s.Committed > s.HighWater || s.HighWater > size || s.Restarts < 0 || s.RejectedAt < 0 {
		return errors.New("invalid offsets")
	}
	last := int64(-1)
	for _, c := range s.Checkpoints {
		if c.Offset <= last || c.Offset > size {
			return errors.New("invalid checkpoints")
		}
		last = c.Offset
	}
	return nil
}
