package main

import (
	"github.com/spf13/pflag"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/upload"
)

// spoolFlags keep the bytes of standard input on disk.
type spoolFlags struct {
	dir   string
	limit cmdline.Size
}

func (f *spoolFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.dir, "spool", "", "keep the bytes of standard input in `DIR` until the service has them, so that gcsup resume can finish the upload")
	fs.Var(&f.limit, "spool-limit", "bytes that --spool may hold, such as 10GiB; beyond it, the input waits (default: 1GiB)")
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
		return exit.Usagef("--spool: only standard input is spooled: a file can be read again")
	case given.Changed("spool-limit") && f.limit < minSpool:
		return exit.Usagef("--spool-limit %s: want at least 4MiB", exactText(f.limit))
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
	return upload.InSpool(f.dir, int64(f.limit))
}
