package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/shell"
	"gcsup/upload"
)

// spoolFlags keep the bytes of standard input on disk.
type spoolFlags struct {
	dir   string
	limit cmdline.Size
}

func (f *spoolFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.dir, "spool", "", "keep the bytes of standard input, or of a command, in `DIR`, which must exist, until the service has them, so that gcsup resume can finish the upload")
	fs.Var(&f.limit, "spool-limit", "bytes that --spool may hold, such as 10GiB; beyond it, the input waits (default: 1GiB)")
	cmdline.Common(fs, "spool")
}

// check refuses the flags for files.
func (f *spoolFlags) check(given *pflag.FlagSet, stream bool) error {
	flag := given.Lookup("spool")
	switch {
	case flag == nil: // sync, which sends no stream
	case f.dir == "" && flag.Changed:
		return exit.Usagef("--spool: want a directory")
	case f.dir == "" && given.Changed("spool-limit"):
		return exit.Usagef("--spool-limit needs --spool")
	case f.dir != "" && !stream:
		return exit.Usagef("--spool: only a stream is spooled: a file can be read again")
	case given.Changed("spool-limit") && f.limit < minSpool:
		return exit.Usagef("--spool-limit %s: want at least 4MiB", exactText(f.limit))
	case f.dir != "":
		return f.checkDir()
	}
	return nil
}

// checkDir refuses a directory that is missing. To make it could fill another disk than that of a volume which is not
// mounted.
func (f *spoolFlags) checkDir() error {
	switch info, err := os.Stat(f.dir); {
	case errors.Is(err, fs.ErrNotExist):
		path := process.Absolute(f.dir)
		err = fmt.Errorf("--spool: %s does not exist: mount its volume, or make the directory with: mkdir -p %s", process.Printable(path), shell.Quote(path))
		return exit.WithKind(err, exit.ErrConfig)
	case err != nil:
		return exit.WithKind(fmt.Errorf("--spool: %w", err), exit.ErrConfig)
	case !info.IsDir():
		return exit.WithKind(fmt.Errorf("--spool: %s is not a directory", process.Printable(f.dir)), exit.ErrConfig)
	}
	return nil
}

// minSpool is the smallest --spool-limit.
const minSpool = 4 << 20

// spool returns the library's option, or nil.
func (f *spoolFlags) spool() *upload.Spool {
	if f.dir == "" {
		return nil
	}
	return &upload.Spool{Dir: f.dir, Limit: int64(f.limit)}
}
