package cmdline

import (
	"time"

	"github.com/spf13/pflag"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/internal/cli/exit"
	"gcsup/upload"
)

// SendFlags control requests and retries.
type SendFlags struct {
	retryFor, maxWait, stallTimeout time.Duration
	stallRate, chunkSize            Size
	ifSourceChanged                 string
	requestRate                     requestRateFlag
}

// DefaultStallRate is the default of --stall-rate in bytes per second.
const DefaultStallRate = 64 << 10

// Add adds the flags to those of a command.
func (f *SendFlags) Add(fs *pflag.FlagSet) {
	f.AddRestarting(fs)
	fs.StringVar(&f.ifSourceChanged, "if-source-changed", "fail", "`fail|restart` if a file changed since its upload started")
}

// AddRestarting adds the flags to those of a command that always starts over if a file changed.
func (f *SendFlags) AddRestarting(fs *pflag.FlagSet) {
	f.ifSourceChanged = "restart"
	f.stallRate = DefaultStallRate
	DurationVar(fs, &f.retryFor, "retry-for", 0, "retry for `DURATION` without progress (default: by size, from half a minute to hours)")
	DurationVar(fs, &f.maxWait, "max-wait", 32*time.Second, "wait at most `DURATION` before a retry, less than 1m")
	DurationVar(fs, &f.stallTimeout, "stall-timeout", 2*time.Minute, "cancel a request after `DURATION` without progress, or later if it is slower than --stall-rate; 0 disables this")
	fs.Var(&f.stallRate, "stall-rate", "bytes per second that a request must transfer, such as 64KiB")
	fs.Var(&f.chunkSize, "chunk-size", "bytes per request, such as 8MiB, for networks that cut long requests (default: 1GiB, then about one minute's worth)")
	fs.Var(&f.requestRate, "request-rate", "at most `N` requests per second that change objects in a bucket, of all shards or workers together, or off (default: a rate that is found after the first 429)")
}

// Options returns the library's options for the flags.
func (f *SendFlags) Options() (upload.Options, error) {
	o := upload.Options{
		Policy:         backoff.Policy{Maximum: f.maxWait},
		RetryFor:       f.retryFor,
		ChunkSize:      int64(f.chunkSize),
		StallTimeout:   f.stallTimeout,
		StallRate:      int64(f.stallRate),
		RestartChanged: f.ifSourceChanged == "restart",
		BriefObject:    true, // a result prints no more of an object
		RequestRates:   f.requestRate.rates(),
	}
	switch {
	case f.ifSourceChanged != "fail" && f.ifSourceChanged != "restart":
		return o, exit.Usagef("--if-source-changed %s: want fail or restart", f.ifSourceChanged)
	case f.chunkSize > 0 && f.chunkSize < chunk.Granularity:
		return o, exit.Usagef("--chunk-size %s: want at least %dKiB, the unit in which the service stores bytes", &f.chunkSize, chunk.Granularity>>10)
	case f.maxWait <= 0 || f.maxWait >= backoff.Limit:
		return o, exit.Usagef("--max-wait %v: want more than 0 and less than %v", f.maxWait, backoff.Limit)
	case f.stallRate == 0:
		return o, exit.Usagef("--stall-rate 0: want a rate; to disable the check, give --stall-timeout 0")
	}
	if f.stallTimeout == 0 {
		o.StallTimeout = -1
	}
	return o, nil
}
