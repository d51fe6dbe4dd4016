package emulator

import (
	"flag"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// Flags are the flags of a server. The zero value is not ready: call Add.
type Flags struct {
	addr, dir, seed, faults, log  string
	createBuckets, discard, noMD5 bool
	tls, http2                    bool
	requireToken, noTokens        bool
	noRunningHash, query308       bool
	latency                       time.Duration
	splitAfter                    time.Duration
	rate, totalRate, faultSpan    size
	memory                        size
	randomFaults, bucketRate      int
	faultSeed                     uint64
}

// Add adds the flags to fs, with their defaults.
func (f *Flags) Add(fs *flag.FlagSet) {
	fs.StringVar(&f.addr, "addr", "127.0.0.1:4443", "listen on `HOST:PORT`; port 0 takes a free one")
	fs.StringVar(&f.dir, "dir", "", "keep everything in `DIR`, and continue with what it contains (default: in memory)")
	f.memory = fakegcs.DefaultMemory
	fs.Var(&f.memory, "memory", "keep at most `SIZE` of objects and open uploads in memory, and the others in a temporary file")
	fs.StringVar(&f.seed, "seed", "", "begin with the objects in `DIR`: a folder for each bucket, in it a file for each object")
	fs.StringVar(&f.faults, "faults", "", "use the fault plan in `FILE`, a JSON array")
	fs.IntVar(&f.randomFaults, "random-faults", 0, "`N` random faults during uploads; none is permanent")
	fs.Uint64Var(&f.faultSeed, "fault-seed", 0, "with --random-faults: the same `SEED` gives the same faults (default: another each time)")
	f.faultSpan = 16 << 20
	fs.Var(&f.faultSpan, "fault-span", "with --random-faults: cut connections within the first `SIZE` bytes of an upload")
	fs.BoolVar(&f.createBuckets, "create-buckets", false, "create a bucket when it is first named")
	fs.BoolVar(&f.tls, "tls", false, "serve https")
	fs.BoolVar(&f.http2, "http2", true, "with --tls, offer HTTP/2")
	fs.DurationVar(&f.latency, "latency", 0, "delay each reply by `DURATION`")
	fs.Var(&f.rate, "rate", "`SIZE` in bytes per second of each connection, such as 10MiB (default: no limit)")
	fs.Var(&f.totalRate, "total-rate", "`SIZE` in bytes per second of all connections together (default: no limit)")
	fs.IntVar(&f.bucketRate, "bucket-rate", 0, "answer 429 to more than `N` writes per second to a range of the names of a bucket (default: no limit)")
	fs.DurationVar(&f.splitAfter, "bucket-split-after", 20*time.Minute, "with --bucket-rate: divide a range of names after this `DURATION` of load")
	fs.BoolVar(&f.discard, "discard", false, "keep sizes and checksums of objects only, not their bytes")
	fs.BoolVar(&f.noMD5, "no-md5", false, "compute no MD5, which costs more than everything else together")
	fs.BoolVar(&f.noTokens, "no-idempotency-tokens", false, "execute a request again even if it repeats an idempotency token")
	fs.BoolVar(&f.requireToken, "require-token", false, "answer 401 to requests without an access token of this emulator")
	fs.BoolVar(&f.noRunningHash, "no-running-hash", false, "do not send the CRC32C of the committed bytes, on which a client must not depend")
	fs.BoolVar(&f.query308, "query-308", false, "answer status queries with 308 even if the client asks for 200, as Google's test bench does")
	fs.StringVar(&f.log, "log", "", "write requests to standard error, as `text|json`")
}

// Names returns the names of the flags in the order in which a help shows them.
func Names() []string {
	return strings.Fields(`addr dir memory seed faults random-faults fault-seed fault-span create-buckets tls http2 latency rate total-rate bucket-rate bucket-split-after discard no-md5 no-idempotency-tokens require-token no-running-hash query-308 log`)
}

// options returns the options for the flags. given reports whether a flag was given. stderr gets the
// log.
func (f *Flags) options(given func(name string) bool, stderr io.Writer) (fakegcs.Options, error) {
	opts := fakegcs.Options{
		Dir: f.dir, CreateBuckets: f.createBuckets, Discard: f.discard, NoMD5: f.noMD5,
		Latency: f.latency, Rate: int64(f.rate), TotalRate: int64(f.totalRate),
		BucketRate: f.bucketRate, SplitAfter: f.splitAfter,
		Logger:       slog.New(slog.NewTextHandler(stderr, nil)), // the directory, and what is not implemented
		RequireToken: f.requireToken, NoRunningHash: f.noRunningHash, Query308: f.query308,
		NoIdempotencyTokens: f.noTokens,
	}
	if opts.Memory = int64(f.memory); f.memory == 0 {
		opts.Memory = -1
	}
	switch {
	case given("memory") && (f.dir != "" || f.discard):
		return opts, usagef("--memory has no effect with --dir and --discard, which keep no objects in memory")
	case f.randomFaults == 0 && (given("fault-seed") || given("fault-span")):
		return opts, usagef("--fault-seed and --fault-span need --random-faults")
	case given("http2") && !f.tls:
		return opts, usagef("--http2 needs --tls")
	case f.randomFaults < 0:
		return opts, usagef("--random-faults %d: want a number that isn't negative", f.randomFaults)
	case f.bucketRate < 0:
		return opts, usagef("--bucket-rate %d: want a number that isn't negative", f.bucketRate)
	case f.bucketRate == 0 && given("bucket-split-after"):
		return opts, usagef("--bucket-split-after needs --bucket-rate")
	case f.splitAfter <= 0:
		return opts, usagef("--bucket-split-after %v: want a duration of more than 0", f.splitAfter)
	case f.latency < 0:
		return opts, usagef("--latency %v: want a duration that isn't negative", f.latency)
	}
	if _, _, err := net.SplitHostPort(f.addr); err != nil {
		return opts, usagef("--addr %q: want HOST:PORT; port 0 takes a free one", f.addr)
	}
	switch f.log {
	case "":
	case "text":
		opts.OnRequest = requestLog(stderr, requestText)
	case "json":
		opts.OnRequest = requestLog(stderr, requestJSON)
		opts.Logger = slog.New(slog.NewJSONHandler(stderr, nil))
	default:
		return opts, usagef("--log %q: want text or json", f.log)
	}
	if f.seed != "" {
		if info, err := os.Stat(f.seed); err != nil {
			return opts, &FileError{err}
		} else if !info.IsDir() {
			return opts, usagef("--seed %s: not a directory", f.seed)
		}
		opts.Seed = os.DirFS(f.seed)
	}
	if f.faults != "" {
		plan, err := readFaults(f.faults)
		if err != nil {
			return opts, err
		}
		opts.Faults = plan
	}
	if f.randomFaults > 0 {
		opts.Faults = append(opts.Faults, faults.Random(f.faultSeed, f.randomFaults, int64(f.faultSpan))...)
	}
	return opts, nil
}

func readFaults(path string) ([]faults.Fault, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &FileError{err}
	}
	defer f.Close()
	plan, err := faults.Parse(f)
	if err != nil {
		return nil, usagef("%s: %w", path, err)
	}
	return plan, nil
}
