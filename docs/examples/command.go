package examples

import (
	"context"
	"os/exec"

	"gcsup/upload"
)

// Output uploads what a command prints, for example a dump of a database. There is
// no object if the command fails, even if it has printed everything.
func Output(ctx context.Context, up *upload.Uploader, spec upload.Spec, name string, args ...string) (*upload.Result, error) {
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	cmd := exec.CommandContext(ctx, name, args...)
	waited := false
	up, err := up.With(upload.CallOptions{Confirm: func(context.Context) error {
		waited = true
		return cmd.Wait()
	}})
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	result, err := up.Reader(ctx, out, spec)
	if !waited { // the upload failed before the command ended
		kill()
		_ = cmd.Wait()
	}
	return result, err
}
