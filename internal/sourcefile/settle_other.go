//go:build !unix && !windows

package sourcefile

import (
	"errors"
	"os"
	"time"
)

func fileClock() int64 { return time.Now().UnixNano() }

func writeBack(*os.File) error { return errors.ErrUnsupported }

func refused(err error) bool { return errors.Is(err, errors.ErrUnsupported) }
