package chunk

import (
	"fmt"
	"io/fs"
)

// Identity identifies a version of a source, so that a later run can detect a
// change. Fields that the platform does not have are 0. Call [Source.Settle]
// first to make it reliable.
type Identity struct {
	Size         int64  `json:"size"`           // in bytes
	ModTimeNS    int64  `json:"mod_time_ns"`    // last change of the content, in ns since 1970
	ChangeTimeNS int64  `json:"change_time_ns"` // last change of content or attributes, in ns since 1970
	Device       uint64 `json:"device"`         // the file system
	Inode        uint64 `json:"inode"`          // the file in that file system
}

// Change describes how two identities differ.
type Change int

const (
	// Same means that no field of the identity has changed.
	Same Change = iota
	// ChangeTimeOnly means that size, modification time and inode are equal,
	// but the change time or the device number is not. The cause may be
	// harmless, such as a chmod or a new mount of the file system. It may also
	// be an edit after which the modification time was restored. Read the bytes
	// again and compare them before they are used.
	ChangeTimeOnly
	// Different means other content or another file.
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

// Compare reports how b, a later identity, differs from a.
func (a Identity) Compare(b Identity) Change {
	switch {
	case a == b:
		return Same
	case a.Size == b.Size && a.ModTimeNS == b.ModTimeNS && a.Inode == b.Inode:
		return ChangeTimeOnly
	}
	return Different
}

// newIdentity returns the fields that every platform has.
func newIdentity(info fs.FileInfo) Identity {
	return Identity{Size: info.Size(), ModTimeNS: info.ModTime().UnixNano()}
}
