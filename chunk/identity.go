package chunk

// Identity identifies a version of a source, so that a later run can detect a
// change. Fields that the platform does not have are 0.
type Identity struct {
	Size         int64  `json:"size"`           // in bytes
	ModTimeNS    int64  `json:"mod_time_ns"`    // last change of the content, in ns since 1970
	ChangeTimeNS int64  `json:"change_time_ns"` // last change of content or attributes, in ns since 1970
	Device       uint64 `json:"device"`         // the file system
	Inode        uint64 `json:"inode"`          // the file in that file system
}
