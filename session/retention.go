package session

import "time"

// Retention prevents the deletion and the replacement of an object before
// RetainUntil. The bucket must allow it:
// https://cloud.google.com/storage/docs/object-lock.
type Retention struct {
	Mode        string    `json:"mode"` // RetentionUnlocked or RetentionLocked
	RetainUntil time.Time `json:"retain_until"`
}

// Modes of a [Retention]. A locked one can only be extended.
const (
	RetentionUnlocked = "Unlocked"
	RetentionLocked   = "Locked"
)

// text returns r in a form that is equal for equal values, or "" if r is nil.
func (r *Retention) text() string {
	if r == nil {
		return ""
	}
	return r.Mode + " until " + timeText(r.RetainUntil)
}
