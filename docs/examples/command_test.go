package examples

import (
	"errors"
	"os/exec"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload"
)

func TestOutput(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no shell")
	}
	srv := emulator(t, faults.Fault{Match: faults.Match{Object: "denied"}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}})
	up := uploader(t, srv, upload.Options{})
	spec := func(object string) upload.Spec { return upload.Spec{Bucket: "dumps", Object: object} }

	if _, err := Output(t.Context(), up, spec("good"), "sh", "-c", "echo rows"); err != nil {
		t.Fatal(err)
	}
	wantObject(t, srv, "dumps", "good", []byte("rows\n"))

	_, err := Output(t.Context(), up, spec("bad"), "sh", "-c", "echo rows; exit 3")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("Output of a command that fails = %v, want its exit status", err)
	}
	if _, ok := srv.Object("dumps", "bad"); ok {
		t.Error("a truncated dump was published")
	}

	// A command that would run without end does not outlive a failed upload.
	if _, err := Output(t.Context(), up, spec("denied"), "sh", "-c", "exec yes"); !errors.Is(err, session.ErrPermission) {
		t.Errorf("Output = %v, want ErrPermission", err)
	}
}
