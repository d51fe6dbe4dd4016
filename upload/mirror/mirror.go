package mirror

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"gcsup/session"
	"gcsup/session/state/bucketstore"
	"gcsup/upload"
	"gcsup/upload/internal/parts"
	"gcsup/upload/tree"
)

// These errors are the last of a run that deletes nothing. Branch on them with errors.Is.
var (
	// ErrIncomplete means that a directory was not read, or a file not uploaded.
	ErrIncomplete = errors.New("objects without a file are not deleted")

	// ErrNoFiles means that there are objects but no files.
	ErrNoFiles = errors.New("no files")

	// ErrTooManyDeletions means that more objects have no file than Options.MaxDelete allows.
	ErrTooManyDeletions = errors.New("too many deletions")
)

// Options configure a [Mirror]. The zero value uses the defaults.
type Options struct {
	// Tree chooses the files. New sets Sorted and ReportLeftOut. A Shard, Dir and
	// ReportSymlinks are refused. An object that Exclude selects, or Include does not, is not
	// deleted unless DeleteExcluded is set, even if it has no file. A file that the
	// limits of size and time leave out protects its object in the same way.
	Tree tree.Options

	// Batch configures the uploads. Skip is the rule by which a file is compared with its
	// object: SkipIdentical, which is the default, or SkipSameTime. If Sizes is nil, it is
	// [Mirror.Sizes]. With DryRun, nothing is uploaded or deleted. Listing is refused.
	Batch upload.BatchOptions

	// Prepare, if not nil, is called with each job before it is compared, in the order of the names. It
	// may change the fields of Spec that do not name the object. It is called in another goroutine.
	Prepare func(*upload.Job)

	// Delete deletes the objects without a file. Without it, Run only uploads, and does not list the
	// whole prefix. MaxDelete is the largest number of deletions. DeleteExcluded also
	// deletes the objects of files that the patterns and the limits of Tree leave out.
	Delete         bool
	MaxDelete      Limit
	DeleteExcluded bool

	// Deleting, if not nil, is called before the first deletion with the number of objects that will be
	// deleted.
	Deleting func(objects int64)

	// FoldersLeft, if not nil, is called once after the deletions if folders that the run emptied could not
	// be deleted, for example because a permission is missing. Only a bucket with hierarchical
	// namespace has folders.
	FoldersLeft func(FoldersLeft)

	// Strict counts an entry that is not a file, and a file that vanished, as a failure, so that
	// nothing is deleted.
	Strict bool

	// Reserved are prefixes of object names in the bucket that are never deleted, such as that
	// of a store of package bucketstore. Names like those of its objects and of temporary
	// objects are always protected.
	Reserved []string

	// TempDir is the directory of temporary files. "" is os.TempDir.
	TempDir string
}

// A Mirror is a directory and the prefix that will be equal to it. It is safe for concurrent use.
type Mirror struct {
	dir     string
	tree    *tree.Tree
	listing upload.Listing
	opts    Options
}

// New returns the Mirror of a directory. spec is the template of the objects. Its Object is the prefix
// of their names, to which New adds a slash at its end if necessary; "" is the whole bucket. The
// files in the directory are directly below the prefix. A nil opts uses the defaults.
func New(dir string, spec upload.Spec, opts *Options) (*Mirror, error) {
	m := &Mirror{dir: dir}
	if opts != nil {
		m.opts = *opts
	}
	o := &m.opts
	switch {
	case o.Batch.Skip == upload.SkipNothing:
		o.Batch.Skip = upload.SkipIdentical
	case o.Batch.Skip != upload.SkipIdentical && o.Batch.Skip != upload.SkipSameTime:
		return nil, fmt.Errorf("%w: the rule %v does not make objects equal to files", tree.ErrUsage, o.Batch.Skip)
	}
	switch {
	case o.Tree.Shard != tree.Shard{}:
		return nil, fmt.Errorf("%w: a mirror has no shards", tree.ErrUsage)
	case o.Tree.ReportSymlinks, o.Batch.Listing != nil, len(spec.Conditions()) > 0:
		return nil, fmt.Errorf("%w: ReportSymlinks, Listing and preconditions are not for a mirror", tree.ErrUsage)
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s: %w: it is not a directory", dir, tree.ErrUsage)
	}
	if spec.Object != "" && !strings.HasSuffix(spec.Object, "/") {
		spec.Object += "/"
	}
	o.Tree.Sorted, o.Tree.ReportLeftOut = true, true
	if o.Tree.IgnoreSymlinks && !os.IsPathSeparator(dir[len(dir)-1]) {
		dir += string(filepath.Separator) // a directory, and not a symbolic link that is left out
	}
	var err error
	if m.tree, err = tree.New([]tree.Source{{Path: dir}}, spec, &o.Tree); err != nil {
		return nil, err
	}
	m.listing = upload.Listing{Bucket: spec.Bucket, Prefix: spec.Object, UserProject: spec.UserProject}
	return m, nil
}

// Prefix returns the prefix of the names of all objects. It is "" or ends in a slash.
func (m *Mirror) Prefix() string { return m.listing.Prefix }

// Sizes yields the sizes of all files, see [tree.Tree.Sizes].
func (m *Mirror) Sizes(ctx context.Context) iter.Seq[int64] { return m.tree.Sizes(ctx) }

// Plan yields what Run with Delete would do, in the order of the object names. It reads directories
// and the listing, but no files: a Compare may become an upload. If the listing fails, the last
// pair has the error. If the plan has a Fail, Run deletes nothing. This is known only at the end of
// the plan.
func (m *Mirror) Plan(ctx context.Context, u *upload.Uploader) iter.Seq2[Action, error] {
	return func(yield func(Action, error) bool) {
		r := rules{m.opts.Batch.Skip, m.protect, m.opts.DeleteExcluded}
		for a, err := range merge(m.jobs(ctx), u.List(ctx, m.listing), r) {
			if !yield(a, err) {
				return
			}
		}
		if ctx.Err() != nil {
			yield(Action{}, fmt.Errorf("mirror: %w: %v", ctx.Err(), context.Cause(ctx)))
		}
	}
}

// jobs yields the jobs of all files.
func (m *Mirror) jobs(ctx context.Context) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		for job := range m.tree.Walk(ctx) {
			if m.opts.Prepare != nil {
				m.opts.Prepare(&job)
			}
			if !yield(job) {
				return
			}
		}
	}
}

// protect returns why an object is not deleted, although it has no file.
func (m *Mirror) protect(o *session.Object) Reason {
	switch {
	case parts.Temporary(o.Name):
		return Temporary
	case bucketstore.Writes(o.Name):
		return SavedUpload
	case o.Size == 0 && strings.HasSuffix(o.Name, "/"):
		return Folder
	}
	for _, prefix := range m.opts.Reserved {
		if strings.HasPrefix(o.Name, prefix) {
			return SavedUpload
		}
	}
	if m.tree.Excludes(o.Name) {
		return Excluded
	}
	return NoReason
}
