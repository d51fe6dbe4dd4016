package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gcsup/backoff"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/metrics"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/shell"
	"gcsup/internal/congestion"
	"gcsup/upload"
)

// targetFlags select the service and the directory of saved uploads.
type targetFlags struct {
	state       stateFlags
	endpoint    string
	emulator    emulatorFlag
	credentials credentialFlags
	headers     headerFlag
	billing     string
	congestion  string
}

// addSaving adds the flags of a command that uses saved uploads.
func (f *targetFlags) addSaving(fs *pflag.FlagSet) {
	f.add(fs)
	f.state.addDir(fs, "keep saved uploads in `DIR` (default: $"+process.StateDirEnv+", else the user's state directory)")
	f.state.addBucket(fs)
}

// addReading adds the flags of a command that uses no saved uploads.
func (f *targetFlags) addReading(fs *pflag.FlagSet) {
	f.add(fs)
	f.state.addDir(fs, "the default of --emulator is \"emulator\" in `DIR` (default: $"+process.StateDirEnv+", else the user's state directory)")
}

func (f *targetFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.endpoint, "endpoint", "", "use the service at this `HOST[:PORT]` or URL (default: STORAGE_EMULATOR_HOST, else storage.googleapis.com)")
	emulator := fs.VarPF(&f.emulator, "emulator", "", "use an emulator inside this process that keeps objects in DIR (default: \"emulator\" in the state directory)")
	emulator.NoOptDefVal = noDir
	f.credentials.add(fs)
	fs.StringVar(&f.billing, "billing-project", "", "`PROJECT` that is billed for the requests, and whose quota they use")
	fs.StringVar(&f.congestion, "congestion-control", congestion.System, "TCP congestion control of the connections: `NAME`, system, or auto (bbr if the system has and allows it)")
	fs.Var(&f.headers, "additional-headers", "send this header with every request; repeat the flag or separate pairs by commas")
}

// emulatorFlag is --emulator[=DIR].
type emulatorFlag struct {
	on  bool
	dir string // "" for the default in the state directory
}

// noDir is the value that pflag sets for --emulator alone. A directory of that name can be
// given as ./DIR.
const noDir = "DIR"

func (e *emulatorFlag) Type() string { return "DIR" }

func (e *emulatorFlag) String() string {
	if e.on && e.dir == "" {
		return noDir
	}
	return e.dir
}

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

// sendFlags control requests, retries and the use of the network.
type sendFlags struct {
	requests   cmdline.SendFlags
	noBreaker  bool
	limitRate  rateFlag
	memory     memoryFlag
	parallel   parallelFlag
	parallelBy string
}

func (f *sendFlags) add(fs *pflag.FlagSet) {
	f.requests.Add(fs)
	f.addNetwork(fs)
}

// addRestarting adds the flags of a command that always starts over if a file changed.
func (f *sendFlags) addRestarting(fs *pflag.FlagSet) {
	f.requests.AddRestarting(fs)
	f.addNetwork(fs)
}

func (f *sendFlags) addNetwork(fs *pflag.FlagSet) {
	f.parallel = parallelAuto
	fs.BoolVar(&f.noBreaker, "no-circuit-breaker", false, "retry even while other uploads of this run fail too")
	fs.Var(&f.parallel, "parallel", "send large files and streams in parts over `N` connections, auto, or off")
	fs.StringVar(&f.parallelBy, "parallel-by", "", "`multipart|compose`: multipart upload, or parallel composite upload (default: chosen for each file)")
	fs.Var(&f.memory, "memory", "memory for standard input, compressed files and parts of multipart uploads, all together, such as 64MiB (default: 128MiB)")
	fs.Var(&f.limitRate, "limit-rate", "bytes per second of all uploads together, such as 20MiB; SIGUSR2 switches the limit off and on")
	cmdline.Common(fs, "limit-rate")
}

// options returns the library's options for these flags.
func (f *sendFlags) options() (upload.Options, error) {
	o, err := f.requests.Options()
	if err != nil {
		return o, err
	}
	way, known := joinBy[f.parallelBy]
	if !known {
		return o, exit.Usagef("--parallel-by %s: want multipart or compose", f.parallelBy)
	}
	o.Parallel = f.parallel.parts(way)
	if f.limitRate.Size > 0 {
		o.RateLimit = upload.NewRateLimit(int64(f.limitRate.Size))
	}
	o.Memory = int64(f.memory.Size)
	if f.noBreaker {
		o.Breaker = backoff.NoBreaker
	}
	return o, nil
}

// outputFlags control what is printed.
type outputFlags struct {
	json, quiet, verbose bool
	progress             progressMode
	logLevel             logLevel

	logFile, report string
	listen          metrics.Address
	backlog         func() metrics.Backlog // of a command with a queue of files; nil for others
}

func (f *outputFlags) add(fs *pflag.FlagSet) {
	f.addService(fs)
	f.progress.add(fs)
	cmdline.Common(fs, "quiet")
	fs.StringVar(&f.report, "report", "", "write a page about the run to `FILE`, as HTML, when it ends; - for standard output")
}

// addService adds the flags of a command that runs until it is stopped, and shows no progress.
func (f *outputFlags) addService(fs *pflag.FlagSet) {
	f.progress = progressOff
	fs.BoolVar(&f.json, "json", false, "print JSON Lines to standard output")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print errors only")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "log every exchange to standard error")
	fs.StringVar(&f.logFile, "log-file", "", "append messages, results and every exchange to `FILE`, with their times")
	f.logLevel.add(fs)
	cmdline.Common(fs, "json")
	fs.Var(&f.listen, "listen", "serve /metrics and /healthz on this `HOST:PORT` during the run, such as 127.0.0.1:9464")
}

// stdoutName is standard output as the value of --report.
const stdoutName = "-"

// checkReport returns an error if the file of --report cannot be written, or if standard output
// cannot have the page besides what else is printed there.
func (f *outputFlags) checkReport() error {
	if f.report == stdoutName {
		if f.json {
			return exit.Usagef("--report=- and --json both write to standard output: give --report a file")
		}
		return nil
	}
	if err := process.CheckReplaceable(f.report); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

// resumeCommand returns the command line that resumes an upload.
func resumeCommand(gcsup string, given *pflag.FlagSet, id string) string {
	return savedCommand(gcsup, given, "resume", id)
}

// savedCommand returns the command line of a command on a saved upload: resume,
// uploads rm or uploads cancel. A user can paste it in any directory. It contains
// the state directory and the emulator's host from the environment, because they
// may be set for this run only. It contains no variables for credentials, and no
// headers, whose values may be secret.
func savedCommand(gcsup string, given *pflag.FlagSet, command, id string) string {
	words := []string{gcsup, command, id}
	local := command == "uploads rm" && !given.Changed("state") // it makes no request
	given.Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		switch f.Name {
		case "state-dir", "state-key-file":
			value = process.Absolute(value)
		case configFlag:
			if value != "" {
				value = process.Absolute(value)
			}
		case "state", "state-unsealed", "state-lease":
		case "encryption-key-file":
			if command != "resume" {
				return
			}
			value = process.Absolute(value)
		case "emulator":
			if local {
				return
			}
			value = process.Absolute(value)
		case "endpoint", "billing-project", "impersonate-service-account", "congestion-control":
			if local {
				return
			}
		case "credentials-file":
			if local {
				return
			}
			value = process.Absolute(value)
		case "retry-for", "max-wait", "no-circuit-breaker", "stall-timeout", "stall-rate", "chunk-size", "parallel", "parallel-by", "limit-rate", "request-rate", "memory", "if-source-changed", "remove-source":
			if command != "resume" {
				return
			}
		default:
			return
		}
		word := "--" + f.Name
		if f.NoOptDefVal == "" || f.Value.String() != f.NoOptDefVal { // otherwise, the flag alone
			word += "=" + value
		}
		words = append(words, shell.Quote(word))
	})
	if dir := os.Getenv(process.StateDirEnv); dir != "" && !given.Changed("state-dir") && !given.Changed("state") {
		words = append(words, shell.Quote("--state-dir="+process.Absolute(dir)))
	}
	if host := emulatorHost(given); host != "" && !local {
		words = slices.Insert(words, 0, "STORAGE_EMULATOR_HOST="+shell.Quote(host))
	}
	return strings.Join(words, " ")
}

// emulatorHost returns the value of STORAGE_EMULATOR_HOST that a printed command must
// set, or "" if no flag leaves the endpoint to that variable. --endpoint with the same
// value would require credentials. cmd.exe cannot set a variable for one command.
func emulatorHost(given *pflag.FlagSet) string {
	if given.Changed("emulator") || given.Changed("endpoint") || runtime.GOOS == "windows" {
		return ""
	}
	return os.Getenv("STORAGE_EMULATOR_HOST")
}
