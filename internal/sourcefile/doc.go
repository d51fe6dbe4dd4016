// Package sourcefile opens the files that are uploaded, notices their changes, and removes them.
//
// Call [Open], or [OpenBelow] if other users can write to the directory. Call [File.Settle] before the
// first byte is read. It ensures that every later change of the file changes its [chunk.Identity], or
// reports that this cannot be ensured. [File.Remove] and [File.Dispose] remove a file only if it is
// unchanged, and no process has it open for writing, as far as the system tells.
package sourcefile
