package source

// POSIX has the attributes of a file for which fs.FileInfo has no method.
type POSIX struct {
	Accessed int64 // seconds since 1970
	UID, GID uint32
}
