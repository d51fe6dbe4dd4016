package main

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/internal/bucket"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
	"gcsup/internal/congestion"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/gcs"
)

// doctor checks what an upload to a bucket needs. It opens one session, never sends
// the last byte, and cancels the session. Only a last byte can create or replace an
// object.
type doctor struct {
	std    stdio
	target targetFlags
	json   bool
	limit  time.Duration // of each check

	noState bool

	c     *connection
	asker *asker // nil until there are credentials
	spec  session.Spec
	below string // prefix of the destination: "" for the bucket, and otherwise it ends in a slash
	uri   session.URI

	reply          session.Reply // of the endpoint, without credentials
	sent, received time.Time     // when it was asked, and when it answered

	cmd  *cobra.Command
	code int
}

func newDoctor(std stdio) *cobra.Command {
	d := &doctor{std: std, limit: checkLimit}
	return d.command()
}

func (d *doctor) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor gs://BUCKET[/PREFIX]",
		Short: "Check credentials, permissions, clock, endpoint and throughput",
		Long: `doctor checks, one line each, what an upload to a bucket needs, and prints what to
do if a check fails. It sends up to 21 MiB into a session that it cancels. It
never creates, replaces or deletes an object. Each check takes at most 10 s.

The checks are:

  config       which configuration file was read
  state        uploads can be saved
  endpoint     it answers as Cloud Storage does
  clock        it is less than a minute off; otherwise the exit code is 78
  credentials  a token can be obtained, and the service accepts it
  permission   storage.objects.create is granted; it names what needs
               storage.objects.list, .get and .delete, if they are missing
  throughput   at least 64 KiB/s; otherwise the exit code is 75

The exit code is that of the first check that failed.`,
		Example:           `  gcsup doctor gs://my-bucket`,
		ValidArgsFunction: d.target.completeURLs(&d.spec.UserProject),
		SuggestFor:        []string{"diagnose", "ping", "test"},
		Args:              cmdline.Exactly(1, "one gs://BUCKET"),
		RunE:              func(cmd *cobra.Command, args []string) error { return d.run(cmd.Context(), args[0]) },
	}
	d.cmd = cmd
	cmd.Flags().BoolVar(&d.json, "json", false, "print JSON Lines, one for each check")
	cmd.Flags().StringVar(&d.spec.UserProject, "user-project", "", "bill this `PROJECT` if the requester pays for the bucket")
	cmd.Flags().BoolVar(&d.noState, "no-state", false, "do not check whether uploads can be saved")
	cmdline.Common(cmd.Flags(), "json")
	d.target.addSaving(cmd.Flags())
	return cmd
}

// checkLine is one check in JSON.
type checkLine struct {
	V         int               `json:"v"`
	Type      string            `json:"type"`
	Check     string            `json:"check"`
	Status    result.Status     `json:"status"`
	Message   string            `json:"message"`
	ElapsedMS int64             `json:"elapsed_ms"`
	SkewMS    *int64            `json:"skew_ms,omitempty"`
	BytesPerS *int64            `json:"bytes_per_s,omitempty"`
	Error     *result.ErrorLine `json:"error"`
}

func (d *doctor) run(ctx context.Context, destination string) (err error) {
	bucket, object, err := parseDestination(destination)
	if err != nil {
		return err
	}
	if object != "" && !strings.HasSuffix(object, "/") {
		object += "/"
	}
	name := make([]byte, 8)
	_, _ = crand.Read(name) // it never fails
	d.spec.Bucket, d.spec.Object, d.spec.IfGenerationMatch = bucket, object+"gcsup-doctor-"+hex.EncodeToString(name), new(int64)
	d.below = object
	if err := d.spec.Validate(); err != nil {
		return err
	}
	if d.c, err = d.target.open(ctx, !d.noState); err != nil {
		return withHint(err, "")
	}
	defer d.c.close()
	defer func() { _ = d.cancel() }() // an unfinished session costs nothing and expires
	usable := true
	for _, check := range d.checks() {
		line := &checkLine{V: 1, Type: "check", Check: check.name, Status: result.Skipped, Message: "an earlier check failed"}
		if err := d.begin(check.name); err != nil {
			return err
		}
		if usable {
			begun := time.Now()
			line.Status = result.OK
			err := limited(ctx, d.limit, func(ctx context.Context) error { return check.do(ctx, line) })
			if ctx.Err() != nil {
				_ = d.text("\n")
				return context.Cause(ctx)
			}
			line.ElapsedMS = time.Since(begun).Milliseconds()
			if err != nil {
				line.Status, line.Message, line.Error = result.Failed, withHint(err, d.c.endpoint).Error(), result.NewErrorLine(err)
				if d.code == exit.OK {
					d.code = exit.Classify(err).Code
				}
			}
			usable = err == nil || !check.need
		}
		if err := d.print(line); err != nil {
			return err
		}
	}
	if d.code != exit.OK {
		return exit.Printed(d.code)
	}
	return nil
}

// doctorCheck is one of the checks.
type doctorCheck struct {
	name string
	do   func(context.Context, *checkLine) error
	need bool // the later checks require that it passes
}

// checks returns the checks in their order. A bucket of --state can be asked only with
// credentials.
func (d *doctor) checks() []doctorCheck {
	checks := []doctorCheck{
		{"config", d.checkConfig, false},
		{"endpoint", d.checkEndpoint, true},
		{"clock", d.checkClock, false},
		{"credentials", d.checkCredentials, true},
		{"permission", d.checkPermission, true},
		{"throughput", d.checkThroughput, false},
	}
	if d.target.state.url != "" {
		return slices.Insert(checks, len(checks)-1, doctorCheck{"state", d.checkStateBucket, false})
	}
	return slices.Insert(checks, 1, doctorCheck{"state", d.checkStateDir, false})
}

// begin prints which check begins, so that a reader knows what takes long. print completes the line.
func (d *doctor) begin(check string) error {
	return d.text(fmt.Sprintf("%-11s  ", check))
}

// text prints text, unless the output is JSON.
func (d *doctor) text(s string) error {
	if d.json {
		return nil
	}
	if _, err := io.WriteString(d.std.out, s); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// print prints the result of a check.
func (d *doctor) print(line *checkLine) error {
	if d.json {
		if err := result.Print(d.std.out, line); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
	}
	return d.text(fmt.Sprintf("%-7s  %s\n", line.Status, process.Printable(line.Message)))
}

// checkConfig reports which configuration file was read.
func (d *doctor) checkConfig(_ context.Context, line *checkLine) error {
	about, read := aboutConfig(d.cmd)
	if line.Message = about; !read {
		line.Status = result.Skipped
	}
	return nil
}

// doctorTries is how often doctor repeats a request after a temporary failure.
const doctorTries = 2

// checkEndpoint asks the endpoint without credentials.
func (d *doctor) checkEndpoint(ctx context.Context, line *checkLine) error {
	options := d.c.options
	options.Anonymous = true
	client, err := gcs.New(ctx, &options)
	if err != nil {
		return exit.WithKind(err, exit.ErrConfig)
	}
	defer client.Close()
	wire, err := session.NewClient(client.HTTP(), d.c.endpoint)
	if err != nil {
		return exit.WithKind(err, exit.ErrConfig)
	}
	a := &asker{client: wire, budget: backoff.Budget{Retries: doctorTries}}
	d.reply, err = a.repeat(ctx, func(ctx context.Context) session.Reply {
		d.sent = time.Now()
		r := wire.Stat(ctx, d.spec)
		d.received = time.Now()
		return r
	})
	switch r := d.reply; {
	case err != nil:
		return err
	case r.Object == nil && (r.Status == 0 || !r.FromService):
		return notTheService(r)
	}
	line.Message = fmt.Sprintf("%s answers in %v", endpointText(d.c.endpoint), d.received.Sub(d.sent).Round(time.Millisecond))
	if name := d.c.options.CongestionControl; name != congestion.System {
		line.Message += "; congestion control: " + congestionText(name)
	}
	if client.ClientCertificate() {
		line.Message += "; there is a client certificate, which it gets if it asks for one"
	}
	return nil
}

// maxSkew is the largest difference of the clocks that is accepted. Saved uploads of
// service accounts are signed with the local time.
// https://developers.google.com/identity/protocols/oauth2/service-account#error-codes
const maxSkew = time.Minute

// checkClock compares the local clock with the Date header of the endpoint's reply.
func (d *doctor) checkClock(_ context.Context, line *checkLine) error {
	if d.reply.Date.IsZero() {
		line.Status, line.Message = result.Skipped, "the endpoint sends no Date header"
		return nil
	}
	// The header has whole seconds, rounded down.
	server := d.reply.Date.Add(500 * time.Millisecond)
	local := d.sent.Add(d.received.Sub(d.sent) / 2)
	skew := local.Sub(server)
	line.SkewMS = new(skew.Milliseconds())
	text := "the clock is right to about 1 s"
	if skew.Abs() > time.Second {
		direction := "behind"
		if skew > 0 {
			direction = "ahead of"
		}
		text = fmt.Sprintf("the clock is %s %s the server's", readable.Span(skew.Abs()), direction)
	}
	if skew.Abs() > maxSkew {
		return exit.WithKind(errors.New(text+"; set it (timedatectl set-ntp true): a token that is signed at a wrong time is refused"), exit.ErrConfig)
	}
	line.Message = text
	return nil
}

// checkCredentials finds the credentials and makes one request with them.
func (d *doctor) checkCredentials(ctx context.Context, line *checkLine) error {
	if err := d.c.dial(ctx, upload.Options{}); err != nil {
		return err
	}
	a, err := d.c.asker()
	if err != nil {
		return err
	}
	a.budget.Retries = doctorTries
	reply, err := a.repeat(ctx, func(ctx context.Context) session.Reply { return a.client.Stat(ctx, d.spec) })
	switch {
	case err != nil:
		return err
	case reply.Status == 0 || reply.Status == http.StatusUnauthorized:
		return reply.Refusal()
	}
	a.client = a.client.WithIntention(crand.Text()) // no change is made twice on purpose
	d.asker = a
	line.Status, line.Message = d.judgeCredentials(reply)
	return nil
}

// judgeCredentials returns the status and the message about credentials with which a request got
// a reply. Credentials that the service did not have to check are not ok.
func (d *doctor) judgeCredentials(reply session.Reply) (status result.Status, message string) {
	why := d.c.client.Anonymous()
	answers := func(r session.Reply) bool { return r.Object != nil || r.Status == http.StatusNotFound }
	switch {
	case d.c.emulator != nil:
		return result.Skipped, "none are sent to an emulator"
	case why != "":
		return result.Skipped, "none are sent, because " + why
	case answers(d.reply):
		return result.Skipped, "not checked: there is a token, but the endpoint gives the same answer without one"
	case answers(reply), reply.Status == http.StatusForbidden:
		return result.OK, "the service accepts them"
	}
	return result.Skipped, fmt.Sprintf("not checked: there is a token, but the service answers %v", reply.Refusal())
}

// checkPermission opens a session, which needs storage.objects.create, and lists
// one object. It asks for the permissions whose use would read, replace or delete an object.
func (d *doctor) checkPermission(ctx context.Context, line *checkLine) error {
	reply, err := d.asker.repeat(ctx, func(ctx context.Context) session.Reply { return d.asker.client.Start(ctx, d.spec, -1) })
	switch {
	case err != nil:
		return err
	case reply.URI.IsZero() && reply.Status == http.StatusNotFound:
		return notFound(reply)
	case reply.URI.IsZero():
		return reply.Refusal()
	}
	d.uri = reply.URI
	page, reply, err := d.asker.list(ctx, bucket.Query{Bucket: d.spec.Bucket, Prefix: d.below, MaxResults: 1, UserProject: d.spec.UserProject})
	switch {
	case err != nil:
		return err
	case page == nil && reply.Status != http.StatusForbidden:
		return reply.Refusal()
	}
	granted, known, err := d.granted(ctx, d.spec.Bucket, optional...)
	if err != nil {
		return err
	}
	if known {
		if granted, err = d.grantedByFolders(ctx, granted); err != nil {
			return err
		}
	}
	missing := " is missing"
	if d.below != "" {
		missing += ", unless a managed folder below " + d.below + " grants it"
	}
	parts := []string{"an upload can start"}
	if page != nil {
		parts[0] += ", and objects can be listed"
		granted = append(granted, permissionList)
	}
	for _, p := range optional {
		if known && !slices.Contains(granted, p) || p == permissionList && page == nil {
			parts = append(parts, p+missing+": "+usesOf[p])
		}
	}
	if !known {
		parts = append(parts, "other permissions are not checked, because the endpoint does not answer which there are")
	}
	line.Message = strings.Join(parts, "; ")
	return nil
}

const (
	permissionCreate = "storage.objects.create"
	permissionGet    = "storage.objects.get"
	permissionList   = "storage.objects.list"
)

// optional are the permissions that only some commands need.
var optional = []string{bucket.PermissionDelete, permissionGet, permissionList}

// usesOf has what needs a permission. docs/reference/permissions.md has the details.
var usesOf = map[string]string{
	bucket.PermissionDelete: "cp and sync cannot replace an object, and sync --delete deletes none",
	permissionGet:           "--remove-source, outbox run and verify of one file need it; large files are sent over one connection",
	permissionList:          "verify -r and sync --delete need it; cp -r uploads all files without a comparison; --no-clobber and --skip-identical ask for each object by itself",
}

// granted returns which of the permissions a bucket grants. known is false if the endpoint does not
// answer this question.
func (d *doctor) granted(ctx context.Context, name string, permissions ...string) (granted []string, known bool, err error) {
	reply, err := d.asker.repeat(ctx, func(ctx context.Context) (reply session.Reply) {
		granted, reply = bucket.Permissions(ctx, d.asker.client, name, d.spec.UserProject, permissions...)
		return reply
	})
	return granted, err == nil && reply.Status == http.StatusOK && reply.Err == nil, err
}

// grantedByFolders returns granted with those optional permissions that the managed folders of the destination
// grant. An endpoint that does not answer this question grants none.
func (d *doctor) grantedByFolders(ctx context.Context, granted []string) ([]string, error) {
	for _, folder := range bucket.ManageableFolders(d.below) {
		missing := slices.DeleteFunc(slices.Clone(optional), func(p string) bool { return slices.Contains(granted, p) })
		if len(missing) == 0 {
			break
		}
		var more []string
		reply, err := d.asker.repeat(ctx, func(ctx context.Context) (reply session.Reply) {
			more, reply = bucket.FolderPermissions(ctx, d.asker.client, d.spec.Bucket, folder, d.spec.UserProject, missing...)
			return reply
		})
		switch {
		case err != nil:
			return nil, err
		case reply.Status == http.StatusOK && reply.Err == nil:
			granted = append(granted, more...)
		}
	}
	return granted, nil
}

// checkThroughput sends parts of growing size until one takes long enough to be
// measured. None of them is the last of its object.
func (d *doctor) checkThroughput(ctx context.Context, line *checkLine) error {
	const enough = 2 * time.Second
	var key [32]byte
	_, _ = crand.Read(key[:]) // zeros could be compressed on the way
	data := rand.NewChaCha8(key)
	var offset int64
	var best float64
	begun := time.Now()
	sending, stop := context.WithTimeout(ctx, d.limit-cancelLimit)
	defer stop()
	for _, size := range []int64{chunk.Granularity, 1 << 20, 4 << 20, 16 << 20} {
		part := chunk.Range{From: offset, To: offset + size}
		start := time.Now()
		reply := d.asker.bounded(sending, func(ctx context.Context) session.Reply {
			return d.asker.client.Put(ctx, d.uri, part, -1, io.LimitReader(data, size))
		})
		elapsed := time.Since(start)
		switch {
		case reply.Status != 308 && offset == 0 && sending.Err() != nil:
			return exit.WithKind(fmt.Errorf("less than %s/s: check the network", readable.Bytes(int64(float64(size)/elapsed.Seconds()))), session.ErrRetriesExhausted)
		case reply.Status != 308 && offset == 0:
			return exhausted(ctx, nil, reply)
		}
		if reply.Status != 308 || reply.Committed <= offset {
			break // the parts before it were measured
		}
		best = max(best, float64(reply.Committed-offset)/elapsed.Seconds())
		offset = reply.Committed
		if elapsed > enough {
			break
		}
	}
	line.BytesPerS = new(int64(best))
	canceled := "the session was canceled, and no object was made"
	if err := d.cancel(); err != nil {
		canceled = "no object was made; the session could not be canceled, and expires in a week"
	}
	text := fmt.Sprintf("%s/s (%s in %v); %s", readable.Bytes(int64(best)), readable.Bytes(offset), time.Since(begun).Round(10*time.Millisecond), canceled)
	if best < cmdline.DefaultStallRate {
		return exit.WithKind(fmt.Errorf("%s; such a slow upload is considered stalled: give a lower --stall-rate, such as 8KiB", text), session.ErrRetriesExhausted)
	}
	line.Message = text
	return nil
}

// cancelLimit is how long the cancellation of the session takes at most.
const cancelLimit = 2 * time.Second

// cancel cancels the session if there is one, even after an interruption.
func (d *doctor) cancel() error {
	if d.uri.IsZero() {
		return nil
	}
	uri := d.uri
	d.uri = session.URI{}
	ctx, stop := context.WithTimeout(context.Background(), cancelLimit)
	defer stop()
	reply, err := d.asker.repeat(ctx, func(ctx context.Context) session.Reply { return d.asker.client.Cancel(ctx, uri) })
	if err == nil && !reply.Canceled() {
		err = reply.Refusal()
	}
	return err
}
