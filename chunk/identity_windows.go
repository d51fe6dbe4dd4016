package chunk

import (
	"io/fs"
	"os"
	"syscall"
)

// identify uses the volume serial number as device and the file index as inode.
// Windows does not return a change time here.
//
// https://learn.microsoft.com/en-us/windows/win32/api/fileapi/ns-fileapi-by_handle_file_information
func identify(f *os.File, info fs.FileInfo) (Identity, error) {
	id := newIdentity(info)
	var d syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &d); err != nil {
		return Identity{}, &fs.PathError{Op: "GetFileInformationByHandle", Path: f.Name(), Err: err}
	}
	id.Device = uint64(d.VolumeSerialNumber)
	id.Inode = uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow)
	return id, nil
}
