// Package tree lists the files of a batch. It yields an [upload.Job] for each
// file of some directories, or of a list of paths. It sends nothing.
//
// Make a [Tree] with [New], then iterate over [Tree.Walk]:
//
//	t, err := tree.New(tree.Sources("photos", "docs/."), upload.Spec{Bucket: "my-bucket", Object: "backup"}, nil)
//	...
//	for job := range t.Walk(ctx) {
//		...
//	}
//
// [Sources] names files and directories as cp -r does. [Place] does so for the arguments
// of a command, whose destination is a prefix or one object. [List] reads paths from a
// list. [Tree.Sizes] yields the sizes of the files, and can run ahead of Walk.
// [ParseShard] selects the part of one machine of many.
//
// # Guarantees
//
//   - Memory does not grow with the number of files, except for 12 bytes for each
//     name of a list that is not sorted.
//   - A walk uses [os.Root] and reads nothing outside its source, unless
//     Options.FollowSymlinks is set. An upload opens Job.Path later, when a
//     directory may have been replaced by a link: see [upload.Job].Below.
//   - Every file is yielded, or reported in Job.Err, unless the options leave it out or
//     it was removed during the walk. A [List] that is not sorted compares hashes
//     of names, and leaves out a file if its hash is that of another name. Empty
//     files are files; empty directories have no job.
//   - No two jobs without an error have the same object.
//   - Job.Path is a path for os.Open, and Job.Spec is the template with the
//     object's name. Size and ModTime are those of the file, or of the target
//     of a link, just before the job is yielded.
//
// # Symbolic links
//
// A walk treats links as follows, unless Options.IgnoreSymlinks leaves them out or
// Options.ReportSymlinks reports them all.
//
//	a link in a directory to        by default                     with Options.FollowSymlinks
//	a file in the same source       yields the file [1]            yields the file [1]
//	a directory                     reports LinkToDirectory        yields its files [1]
//	a directory above it            reports LinkToDirectory        reports LinkLoop
//	anything outside the source     reports LinkOutside            yields it [1]
//	a path that begins with /       reports LinkOutside [2]        yields it [1]
//	nothing                         reports LinkDangling           reports LinkDangling
//	itself                          reports LinkLoop               reports LinkLoop
//	a FIFO, a socket, a device      reports FIFO, Socket, Device   reports FIFO, Socket, Device
//
// [1] means under the link's name. [2] means even inside the source.
//
// A [Source] that is itself a link is followed. The links of a [List] are followed
// anywhere.
//
// # Patterns
//
// Options.Include and Options.Exclude have the patterns of rclone, see
// https://rclone.org/filtering/, with three differences. A pattern that matches a
// directory selects all files below it, which rclone does only for an exclude that
// ends in a slash. An exclude takes precedence over an include. An include with a slash
// inside, such as b/**, matches at any depth, as an exclude does; rclone does not read the
// directory a to find a/b/x. [Options] has the rules and examples.
//
// [ReadPatterns] reads patterns from a file.
//
// # Private directories
//
// A program that saves its uploads in a directory should give it in Options.Private: session
// URIs are secrets, and a backup of a home directory would upload them.
//
// # Two sources for one object
//
// [New] returns [ErrCollision] if the paths of the sources show a conflict. If the
// directories of two sources overlap at the destination, such as a/. and b/. at one
// prefix, each name is looked up in the other source. If both would upload it, both
// jobs have ErrCollision, and neither is uploaded. On a file system that ignores case,
// this includes names that differ only in case.
//
// # Errors
//
// Job.Err is about one file or directory, and names its path. It wraps
// [ErrCollision], [ErrSymlink], [ErrNotRegular], [ErrName], [ErrSort] or the error
// of the operating system, such as fs.ErrPermission. The job of a directory has a
// path that ends in a separator and an object that ends in a slash. Its files are
// not listed. Every shard reports a directory, one shard reports a file.
//
// An entry of a directory that is not a file, such as a link to a directory or a
// socket, has an [*EntryError] with its [Kind]. Every walk reports it, so that a
// program may count such entries and skip them, as gcsup cp does.
//
// The functions return errors that wrap [ErrUsage] or [ErrCollision] for wrong
// arguments, and the error of the operating system for a source that is missing.
package tree
