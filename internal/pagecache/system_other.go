//go:build !linux || !(amd64 || arm64 || loong64 || ppc64le || riscv64)

package pagecache

import (
	"errors"
	"os"
)

func observable() bool { return false }

func absentPages(*os.File, span) ([]span, error) { return nil, errors.ErrUnsupported }

func dropPages(*os.File, span) {}
