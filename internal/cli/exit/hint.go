package exit

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	"gcsup/backoff"
	"gcsup/internal/bucket"
	"gcsup/internal/decide"
	"gcsup/internal/errkind"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
	"gcsup/upload/manifest"
	"gcsup/upload/mirror"
)

// WithHint returns err with the text for people ([Text]), to which it adds advice. endpoint is the endpoint in use, as messages
// show it, or "". gcsup is the command that runs gcsup.
func WithHint(err error, endpoint, gcsup string) error {
	hint := ""
	if !ofCommand(err) {
		hint = strings.ReplaceAll(adviceFor(err), "{gcsup}", gcsup)
	}
	if network := ofNetwork(err, cmp.Or(endpoint, "the endpoint")); network != "" {
		hint = network
	}
	failed, refused := errors.AsType[*session.Error](err)
	if refused && errors.Is(failed, session.ErrPermission) {
		switch needed := neededFor[failed.Op]; {
		case failed.Status != 0 && !failed.FromService:
			hint = "a proxy or a gateway refuses the request: check it, or add the host to NO_PROXY"
		case decide.Protected(failed):
			hint = "a hold or a retention protects the object: wait until it ends, or upload to another name"
		case needed != "":
			hint = "the account needs " + needed
		}
	}
	if refused && errors.Is(failed, session.ErrOutcomeUnknown) && failed.Op == session.OpStat && failed.Status == http.StatusForbidden {
		hint = "the account needs " + neededFor[failed.Op] + ", or look at the object with another account"
	}
	if _, scopes := errors.AsType[*session.ScopeError](err); scopes {
		hint = "no role helps: stop the machine and give it another scope (gcloud compute instances set-service-account MACHINE --scopes=cloud-platform), or name a key file"
	}
	if _, anonymous := errors.AsType[*session.AnonymousError](err); anonymous || !refused && errors.Is(err, session.ErrCredentials) {
		hint = "" // no credentials were sent, and the error explains why
	}
	if errors.Is(err, syscall.ENOSPC) {
		hint = "free some disk space, and run the command again"
	}
	text := Text(err)
	if hint != "" {
		text = strings.TrimSuffix(text, ".") + "; " + hint // the service ends its messages with a period
	}
	return hinted{err, text}
}

// advice has the advice for sentinel errors whose text does not suffice. {gcsup} stands for the
// words that run gcsup.
var advice = []struct {
	sentinel error
	hint     string
}{
	{manifest.ErrVersion, "use the newer program, or name another manifest"},
	{manifest.ErrFormat, "name another file"},

	{mirror.ErrTooManyDeletions, "check the directory and the prefix, for example with --dry-run; to delete so many objects, give --max-delete=N or N%"},

	{bucketstore.ErrSlow, "give a longer lease (--state-lease, or --ack-wait of gcsup-fleet)"},
	{session.ErrSourceChanged, "to upload the changed file, run the command again with --if-source-changed=restart"},
	{state.ErrOptionsDiffer, "give the options of the first run, or none; --restart discards what was sent"},
	{session.ErrEncryptionKey, "give the key of the first run with --encryption-key-file or GCSUP_ENCRYPTION_KEY"},
	{bucketstore.ErrSealed, "give the key with which it was saved with --state-key-file; to delete it, run {gcsup} uploads rm ID"},
	{state.ErrCorrupt, "to start over, upload the file again; to delete it, run {gcsup} uploads rm ID"},
	{state.ErrVersion, "use the newer program; to delete it, run {gcsup} uploads rm ID"},
	{state.ErrNotFound, "see {gcsup} uploads list"},
	{session.ErrNotFound, "create the bucket, or correct its name or the endpoint"},
	{session.ErrQuota, "run the same command again when the quota is refilled, or raise it in the Cloud console"},
	{session.ErrCanceled, "run the same command again to start over"},
	{session.ErrOutcomeUnknown, "check the object before you run the command again"},
	{session.ErrCredentials, "log in again (gcloud auth application-default login), or set GOOGLE_APPLICATION_CREDENTIALS to another key file"},
	{session.ErrPermission, "the account needs storage.objects.create on the bucket, and storage.objects.delete to replace an object"},
}

// adviceFor returns the advice for the sentinel error that decides the kind of err, or "".
func adviceFor(err error) string {
	kind := errkind.Of(err)
	for _, a := range advice {
		if errors.Is(err, a.sentinel) && errkind.Of(a.sentinel) == kind {
			return a.hint
		}
	}
	return ""
}

// neededFor has the permissions that requests need, if they do not write to the object in one request or
// through a session.
var neededFor = map[session.Op]string{
	session.OpStat:         "storage.objects.get on the bucket",
	bucket.OpRead:          "storage.objects.get on the bucket",
	bucket.OpList:          "storage.objects.list on the bucket",
	bucket.OpDelete:        "storage.objects.delete on the bucket",
	bucket.OpConfig:        "storage.buckets.get",
	bucket.OpNotifications: "storage.buckets.get",
	bucket.OpManagedFolder: "storage.managedFolders.get on the bucket",
	bucket.OpDeleteFolder:  "storage.folders.delete on the bucket",
	bucket.OpCompose:       "storage.objects.create, storage.objects.get and storage.objects.delete on the bucket",
	multipart.OpStart:      "storage.multipartUploads.create and storage.objects.create on the bucket, and storage.objects.delete to replace an object",
	multipart.OpPart:       "storage.multipartUploads.create and storage.objects.create on the bucket",
	multipart.OpComplete:   "storage.multipartUploads.create and storage.objects.create on the bucket, and storage.objects.delete to replace an object",
	multipart.OpList:       "storage.multipartUploads.listParts on the bucket",
	multipart.OpAbort:      "storage.multipartUploads.abort on the bucket",
}

// hinted is an error with a text for people.
type hinted struct {
	error
	text string
}

func (h hinted) Error() string { return h.text }
func (h hinted) Unwrap() error { return h.error }

// tokenServiceError is a *gcs.TokenServiceError. This package does not import gcs: its
// tests would then link the Google SDK, which takes longer than all else they do.
type tokenServiceError interface {
	error
	TokenService() string
}

// mutualTLS is gcs.MutualTLSEndpoint. The environment selects it, and no flag.
const mutualTLS = "https://storage.mtls.googleapis.com"

// ofNetwork returns the advice for an endpoint that was not reached, or "" for
// another error.
func ofNetwork(err error, endpoint string) string {
	e, ok := errors.AsType[*session.Error](err)
	stranger := ok && e.Status >= 200 && e.Status < 500 && !e.FromService
	if ok && (e.Status == http.StatusProxyAuthRequired || backoff.ProxyStatus(e.Err) == http.StatusProxyAuthRequired) {
		return "the proxy requires a user name and a password: set them in HTTPS_PROXY (HTTP_PROXY for an http endpoint), as in http://USER:PASSWORD@HOST:PORT"
	}
	if !ok || e.Status != 0 && !stranger || !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrRetriesExhausted) {
		return ""
	}
	if ts, ok := errors.AsType[tokenServiceError](err); ok {
		return fmt.Sprintf("access tokens come from %s, which is not available: check this machine's network, or use other credentials, such as another key file", ts.TokenService())
	}
	correct := "correct it (--endpoint, STORAGE_EMULATOR_HOST)"
	if endpoint == mutualTLS {
		correct = "set GOOGLE_API_USE_MTLS_ENDPOINT=never for the endpoint without client certificates"
	}
	_, unknown := errors.AsType[*net.DNSError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	op, dial := errors.AsType[*net.OpError](err)
	switch {
	case backoff.ProxyStatus(e.Err) != 0:
		return fmt.Sprintf("the proxy does not connect to %s: check the proxy, or add the host to NO_PROXY", endpoint)
	case dial && op.Op == "proxyconnect":
		return "the proxy cannot be reached: correct HTTPS_PROXY or HTTP_PROXY, or add the host to NO_PROXY"
	case unknown:
		return fmt.Sprintf("the host name in %s does not resolve: %s, or check this machine's network", endpoint, correct)
	case untrusted:
		return fmt.Sprintf("the certificate of %s is not trusted: set SSL_CERT_FILE to a file with its certificate authority, or correct the endpoint", endpoint)
	case dial && op.Op == "dial":
		return fmt.Sprintf("%s cannot be reached: %s, check the network, or start the server", endpoint, correct)
	case dial && op.Op == "remote error": // a TLS alert
		return fmt.Sprintf("%s refuses the TLS handshake: if it asks for a client certificate, name one in certificate_config.json and set GOOGLE_API_USE_CLIENT_CERTIFICATE=true, or correct the endpoint", endpoint)
	case e.Status/100 == 2, errors.Is(err, session.ErrNotFound): // 2xx is perhaps a login page
		return fmt.Sprintf("%s does not answer like Cloud Storage: log in to this network if it has a login page, check the proxy if there is one, or correct the endpoint (http or https, the port)", endpoint)
	}
	return ""
}
