package chunk

import (
	"fmt"
	"io/fs"
)

// Identity tells whether a source is still the one that an upload began with.
// Fields that the platform does not have are 0. [Source.Settle] makes it reliable.
type Identity struct {
	Size         int64  `json:"size"`           // in bytes
	ModTimeNS    int64  `json:"mod_time_ns"`    // last change of the content, in ns since 1970
	ChangeTimeNS int64  `json:"change_time_ns"` // last change of content or attributes, in ns since 1970
	Device       uint64 `json:"device"`         // the file system
	Inode        uint64 `json:"inode"`          // the file in that file system
}

// Change is how two identities differ.
type Change int

const (
	// Same: nothing that can be seen from outside has changed.
	Same Change = iota
	// ChangeTimeOnly: size, modification time and inode are the same, but the
	// change time is not, after a chmod as well as after an edit whose
	// modification time was put back. Or the device number is not, which
	// happens when a file system is mounted again. The bytes tell: read them
	// again and compare before they are used.
	ChangeTimeOnly
	// Different: other content or another file.
	Different
)

// String returns the name of c.
func (c Change) String() string {
	switch c {
	case Same:
		return "same"
	case ChangeTimeOnly:
		return "change time only"
	case Different:
		return "different"
	}
	return fmt.Sprintf("Change(%d)", int(c))
}

// Compare tells how b, seen later, differs from a.
func (a Identity) Compare(b Identity) Change {
	switch {
	case a == b:
		return Same
	case a.Size == b.Size && a.ModTimeNS == b.ModTimeNS && a.Inode == b.Inode:
		return ChangeTimeOnly
	}
	return Different
}

// newIdentity returns what every platform knows; each adds the rest.
func newIdentity(info fs.FileInfo) Identity {
	return Identity{Size: info.Size(), ModTimeNS: info.ModTime().UnixNano()}
}
