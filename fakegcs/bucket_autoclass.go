package fakegcs

import (
	"cmp"
	"time"
)

// autoclass is the setting with which the service changes the storage class of objects that are not read. The
// server only keeps it. https://cloud.google.com/storage/docs/autoclass
type autoclass struct {
	Enabled                        bool      `json:"enabled"`
	ToggleTime                     timestamp `json:"toggleTime"`
	TerminalStorageClass           string    `json:"terminalStorageClass,omitempty"`
	TerminalStorageClassUpdateTime timestamp `json:"terminalStorageClassUpdateTime,omitzero"`
}

// completeAutoclass sets the times of the setting.
func (r *bucketResource) completeAutoclass(before *bucketResource, now time.Time) *apiError {
	was, is := cmp.Or(before.Autoclass, &autoclass{}), cmp.Or(r.Autoclass, &autoclass{})
	if before.Autoclass == nil && !is.Enabled {
		r.Autoclass = nil
		return nil
	}
	a := &autoclass{Enabled: is.Enabled, ToggleTime: was.ToggleTime}
	if is.Enabled != was.Enabled {
		a.ToggleTime = timestamp{now}
	}
	if is.Enabled {
		a.TerminalStorageClass = cmp.Or(is.TerminalStorageClass, was.TerminalStorageClass, "NEARLINE")
		a.TerminalStorageClassUpdateTime = was.TerminalStorageClassUpdateTime
		if a.TerminalStorageClass != was.TerminalStorageClass {
			a.TerminalStorageClassUpdateTime = timestamp{now}
		}
	}
	r.Autoclass = a
	return nil
}

// checkAutoclass returns an error if the bucket cannot have its setting.
func (r *bucketResource) checkAutoclass() *apiError {
	a := r.Autoclass
	switch {
	case a == nil || !a.Enabled:
	case a.TerminalStorageClass != "NEARLINE" && a.TerminalStorageClass != "ARCHIVE":
		return invalid("Invalid value for autoclass: '%s' is not NEARLINE or ARCHIVE.", a.TerminalStorageClass)
	case r.StorageClass != "STANDARD":
		return invalid("Invalid value for autoclass: the default storage class must be STANDARD, not %s.", r.StorageClass)
	}
	return nil
}
