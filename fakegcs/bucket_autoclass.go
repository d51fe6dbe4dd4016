package fakegcs

import (
	"cmp"
	"encoding/json"
	"time"

	"gcsup/fakegcs/internal/strictjson"
)

// autoclass is the setting with which the service changes the storage class of objects that are not read. The
// server only keeps it. https://cloud.google.com/storage/docs/autoclass
type autoclass struct {
	Enabled                        bool      `json:"enabled"`
	ToggleTime                     timestamp `json:"toggleTime"`
	TerminalStorageClass           string    `json:"terminalStorageClass,omitempty"`
	TerminalStorageClassUpdateTime timestamp `json:"terminalStorageClassUpdateTime,omitzero"`
}

// setAutoclass applies a patch of the setting. Only the server sets the times.
func (r *bucketResource) setAutoclass(raw json.RawMessage, now time.Time) error {
	var patch struct {
		Enabled                        bool   `json:"enabled"`
		TerminalStorageClass           string `json:"terminalStorageClass"`
		ToggleTime                     any    `json:"toggleTime"`
		TerminalStorageClassUpdateTime any    `json:"terminalStorageClassUpdateTime"`
	}
	if err := strictjson.Decode(raw, &patch, "autoclass"); err != nil {
		return err
	}
	was := autoclass{}
	if r.Autoclass != nil {
		was = *r.Autoclass
	} else if !patch.Enabled {
		return nil
	}
	is := autoclass{Enabled: patch.Enabled, ToggleTime: was.ToggleTime}
	if is.Enabled != was.Enabled {
		is.ToggleTime = timestamp{now}
	}
	if is.Enabled {
		is.TerminalStorageClass = cmp.Or(patch.TerminalStorageClass, was.TerminalStorageClass, "NEARLINE")
		is.TerminalStorageClassUpdateTime = was.TerminalStorageClassUpdateTime
		if is.TerminalStorageClass != was.TerminalStorageClass {
			is.TerminalStorageClassUpdateTime = timestamp{now}
		}
	}
	r.Autoclass = &is
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
