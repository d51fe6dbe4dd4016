//go:build !unix

package chunk

import (
	"errors"
	"os"
	"time"
)

func fileClock() int64 { return time.Now().UnixNano() }

// writeBack is not supported: Windows flushes only files that are open for
// writing.
//
// https://learn.microsoft.com/en-us/windows/win32/api/fileapi/nf-fileapi-flushfilebuffers
func writeBack(*os.File) error { return errors.ErrUnsupported }

func refused(err error) bool { return errors.Is(err, errors.ErrUnsupported) }
