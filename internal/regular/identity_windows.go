package regular

import (
	"io/fs"
	"os"
	"syscall"
)

// Identify returns the identity of the open file f, which has the metadata info. If f is
// nil, it has only the size and the time. Identify uses the volume serial number as device and the file index as inode.
// Windows does not return a change time here.
//
// https://learn.microsoft.com/en-us/windows/win32/api/fileapi/ns-fileapi-by_handle_file_information
func Identify(f *os.File, info fs.FileInfo) (Identity, error) {
	id := newIdentity(info)
	if f == nil {
		return id, nil
	}
	var d syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &d); err != nil {
		return Identity{}, &fs.PathError{Op: "GetFileInformationByHandle", Path: f.Name(), Err: err}
	}
	id.Device = uint64(d.VolumeSerialNumber)
	id.Inode = uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow)
	return id, nil
}
