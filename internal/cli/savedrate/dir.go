package savedrate

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gcsup/internal/cli/process"
)

// Dir is a directory with one file for each bucket. The methods may be called by several processes at a
// time. The last one that writes a file wins.
type Dir struct {
	path     string
	endpoint string
	process  string
}

// New returns the directory at path, which is created by the first Save. The rates are those of
// buckets at endpoint.
func New(path, endpoint string) *Dir { return &Dir{path, endpoint, rand.Text()} }

// Rates returns the rates that are valid now. Files that cannot be read are ignored. It removes those of all
// endpoints that are no longer valid.
func (d *Dir) Rates(now time.Time) iter.Seq[BucketRate] {
	return func(yield func(BucketRate) bool) {
		entries, _ := os.ReadDir(d.path)
		for _, e := range entries {
			name := filepath.Join(d.path, e.Name())
			r, ok := read(name)
			switch {
			case !ok || !r.valid(now):
				d.removeOld(name, now)
			case r.Endpoint == d.endpoint && e.Name() == d.file(r.Bucket) && !yield(r):
				return
			}
		}
	}
}

// Save records the rate of a bucket, whose last 429 was at refused.
func (d *Dir) Save(bucket string, perSecond float64, refused, now time.Time) error {
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	path := filepath.Join(d.path, d.file(bucket))
	latest := BucketRate{1, d.endpoint, bucket, perSecond, refused.UTC(), now.UTC(), d.process}
	if earlier, ok := read(path); ok {
		latest = merge(earlier, latest)
	}
	content, err := json.Marshal(latest)
	if err != nil {
		return err
	}
	return process.ReplaceFile(path, append(content, '\n'))
}

const suffix = ".json"

// file returns the name of the file of a bucket.
func (d *Dir) file(bucket string) string {
	sum := sha256.Sum256([]byte(d.endpoint + "\n" + bucket))
	return hex.EncodeToString(sum[:16]) + suffix
}

// read returns the record in a file.
func read(path string) (r BucketRate, ok bool) {
	if !strings.HasSuffix(path, suffix) {
		return r, false
	}
	content, err := os.ReadFile(path)
	return r, err == nil && json.Unmarshal(content, &r) == nil
}

// removeOld removes a file of this package that was not written for as long as a rate is remembered.
func (d *Dir) removeOld(path string, now time.Time) {
	if !strings.HasSuffix(path, suffix) && !strings.HasSuffix(path, process.TempSuffix) {
		return
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeType == 0 && now.Sub(info.ModTime()) > Lifetime {
		_ = os.Remove(path)
	}
}
