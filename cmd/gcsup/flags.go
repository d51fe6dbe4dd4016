package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"

	"gcsup/backoff"
	"gcsup/upload"
)

// targetFlags say where saved uploads and the service are.
type targetFlags struct {
	stateDir string
	endpoint string
	emulator emulatorFlag
	headers  headerFlag
}

func (f *targetFlags) add(fs *pflag.FlagSet) {
	f.addStateDir(fs)
	fs.StringVar(&f.endpoint, "endpoint", "", "send to this `HOST[:PORT]` or URL, not to storage.googleapis.com or STORAGE_EMULATOR_HOST")
	emulator := fs.VarPF(&f.emulator, "emulator", "", "send to an emulator inside this process, which keeps objects in DIR (default \"emulator\" in the state directory)")
	emulator.NoOptDefVal = noDir
	fs.Var(&f.headers, "additional-headers", "send this header with every request; may be repeated, or a list with commas")
}

func (f *targetFlags) addStateDir(fs *pflag.FlagSet) {
	fs.StringVar(&f.stateDir, "state-dir", "", "keep saved uploads in `DIR` (default $"+stateDirEnv+", else the user's state directory)")
}

// emulatorFlag is --emulator[=DIR].
type emulatorFlag struct {
	on  bool
	dir string // "": in the state directory
}

// noDir is what pflag sets for --emulator alone. It makes the help say
// --emulator[=DIR]; ./DIR is a directory of that name.
const noDir = "DIR"

func (e *emulatorFlag) Type() string { return "" }

func (e *emulatorFlag) String() string { return e.dir }

func (e *emulatorFlag) Set(text string) error {
	if text == "" {
		return fmt.Errorf("want a directory, or --emulator alone")
	}
	if text == noDir {
		text = ""
	}
	e.on, e.dir = true, text
	return nil
}

// sendFlags say how to send and when to give up.
type sendFlags struct {
	retryFor, maxWait, stallTimeout time.Duration
	stallRate, chunkSize            byteSize
	ifSourceChanged                 string
	noGate                          bool
}

func (f *sendFlags) add(fs *pflag.FlagSet) {
	f.stallRate = 64 << 10
	fs.DurationVar(&f.retryFor, "retry-for", 0, "keep trying for `DURATION` without progress (default: by the size at stake, half a minute to hours)")
	fs.DurationVar(&f.maxWait, "max-wait", 32*time.Second, "wait at most `DURATION` before a retry; under 1m")
	fs.BoolVar(&f.noGate, "no-gate", false, "retry even while other uploads of this run fail too")
	fs.DurationVar(&f.stallTimeout, "stall-timeout", 2*time.Minute, "give a request up when it lags `DURATION` behind --stall-rate; 0 never does")
	fs.Var(&f.stallRate, "stall-rate", "bytes per second that a request must move, such as 64KiB")
	fs.Var(&f.chunkSize, "chunk-size", "bytes per request, such as 8MiB, for networks that cut long requests (default: 1GiB, then about a minute's worth)")
	fs.StringVar(&f.ifSourceChanged, "if-source-changed", "fail", "`fail|restart` when a file changed since its upload began")
}

// options are the library's for these flags.
func (f *sendFlags) options() (upload.Options, error) {
	o := upload.Options{
		Policy:         backoff.Policy{Maximum: f.maxWait},
		RetryFor:       f.retryFor,
		ChunkSize:      int64(f.chunkSize),
		StallTimeout:   f.stallTimeout,
		StallRate:      int64(f.stallRate),
		RestartChanged: f.ifSourceChanged == "restart",
	}
	switch {
	case f.ifSourceChanged != "fail" && f.ifSourceChanged != "restart":
		return o, usagef("--if-source-changed %s: want fail or restart", f.ifSourceChanged)
	case f.retryFor < 0:
		return o, usagef("--retry-for %v is negative", f.retryFor)
	case f.maxWait <= 0 || f.maxWait >= backoff.Limit:
		return o, usagef("--max-wait %v: want more than 0 and less than %v", f.maxWait, backoff.Limit)
	case f.stallTimeout < 0:
		return o, usagef("--stall-timeout %v is negative; 0 switches it off", f.stallTimeout)
	case f.stallRate == 0:
		return o, usagef("--stall-rate 0: want a rate; --stall-timeout 0 switches the watch off")
	}
	if f.noGate {
		o.Gate = backoff.NoGate
	}
	if f.stallTimeout == 0 {
		o.StallTimeout = -1
	}
	return o, nil
}

// outputFlags say what to print.
type outputFlags struct {
	json, quiet, verbose bool
}

func (f *outputFlags) add(fs *pflag.FlagSet) {
	fs.BoolVar(&f.json, "json", false, "print JSON Lines to standard output")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print errors only")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "log every exchange to standard error")
}

// byteSize is a flag like 8MiB. Units are those of IEC 80000-13: MiB is 2^20,
// MB is 10^6.
type byteSize int64

func (b *byteSize) Type() string { return "SIZE" }

func (b *byteSize) String() string {
	n := int64(*b)
	switch { // exact, because resumeCommand repeats it
	case n == 0:
		return "" // pflag shows no default then
	case n%(1<<30) == 0:
		return fmt.Sprintf("%dGiB", n>>30)
	case n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return fmt.Sprint(n)
}

var errSize = errors.New("want a size such as 8MiB")

func (b *byteSize) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	if err != nil || n > math.MaxInt64 {
		return errSize
	}
	*b = byteSize(n)
	return nil
}

// resumeCommand is the command line that resumes an upload: what a user can
// paste, in any directory. It names what this run took from the environment, in
// case that it was set for this run alone. Not so credentials: where they are is
// the environment's matter. Headers are left out, their values may be secret.
func resumeCommand(program string, given *pflag.FlagSet, id string) string {
	words := []string{program, "resume", id}
	given.Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		switch f.Name {
		case "state-dir", "emulator":
			value = absolute(value)
		case "endpoint", "retry-for", "max-wait", "no-gate", "stall-timeout", "stall-rate", "chunk-size", "if-source-changed":
		default:
			return
		}
		word := "--" + f.Name
		if value != "" { // --emulator alone
			word += "=" + value
		}
		words = append(words, shellQuote(word))
	})
	if dir := os.Getenv(stateDirEnv); dir != "" && !given.Changed("state-dir") {
		words = append(words, shellQuote("--state-dir="+absolute(dir)))
	}
	// Not as --endpoint, for which credentials are needed. cmd.exe has no such
	// way of writing it; there it is set for more than one command.
	if host := os.Getenv("STORAGE_EMULATOR_HOST"); host != "" && !given.Changed("emulator") && runtime.GOOS != "windows" {
		words = slices.Insert(words, 0, "STORAGE_EMULATOR_HOST="+shellQuote(host))
	}
	return strings.Join(words, " ")
}

func absolute(path string) string {
	if path == "" {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// shellQuote makes one word of a POSIX shell.
func shellQuote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@%+"
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !slices.Contains([]rune(plain), r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
