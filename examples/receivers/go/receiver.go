// Receives signed events: verifies the signature, stores each event once, answers, and does the work afterwards.
//
//	WEBHOOK_KEYS='whsec_… whpk_…' go run .
//
// WEBHOOK_KEYS has the shared secrets (whsec_) and public keys (whpk_) of the sender, several while one is replaced. PORT is
// 9190 and EVENTS is the folder events unless they say otherwise. Needs nothing but the standard library.
package main

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	tolerance = 5 * time.Minute
	// The least of Standard Webhooks. An empty one would accept what anybody signs.
	secretMinBytes = 24
	bodyMaxBytes   = 2 * 1024 * 1024
)

// key has its scheme, and tells whether it signed a text.
type key struct {
	scheme    string
	hasSigned func(signature, text []byte) bool
}

type receiver struct {
	keys   []key
	events string
	work   chan string
}

// handle is your work: it may take its time, and it is done again if this program ends in the middle of it.
func handle(body []byte) error {
	fmt.Println("handled", string(body))
	return nil
}

// readKey reads a key. Its errors say what is wrong and what would be right, and never show a key.
func readKey(text string) (key, error) {
	prefix, encoded, _ := strings.Cut(text, "_")
	if prefix == "whsk" {
		return key{}, errors.New("has a private key (whsk_), which only the sender needs: use its public key, whpk_…")
	}
	if prefix != "whsec" && prefix != "whpk" {
		return key{}, errors.New("has a key without its prefix: a secret begins with whsec_, a public key with whpk_")
	}
	bytes, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return key{}, errors.New("has a key that is not base64 after its prefix: copy the whole key, also the = at its end")
	}
	if prefix == "whsec" {
		return sharedKey(bytes)
	}
	return publicKey(bytes)
}

func sharedKey(secret []byte) (key, error) {
	if len(secret) < secretMinBytes {
		return key{}, fmt.Errorf("has a secret of %d bytes; it needs at least %d: `lastmile secret` makes one",
			len(secret), secretMinBytes)
	}
	return key{"v1", func(signature, text []byte) bool {
		mac := hmac.New(sha256.New, secret)
		mac.Write(text)
		return hmac.Equal(mac.Sum(nil), signature)
	}}, nil
}

func publicKey(bytes []byte) (key, error) {
	if len(bytes) != ed25519.PublicKeySize {
		return key{}, fmt.Errorf("has a public key of %d bytes; it needs %d: copy the whole whpk_… of the sender",
			len(bytes), ed25519.PublicKeySize)
	}
	return key{"v1a", func(signature, text []byte) bool {
		return ed25519.Verify(bytes, text, signature)
	}}, nil
}

// isValid tells whether one of the keys has signed these bytes within the last minutes.
func (r *receiver) isValid(header http.Header, body []byte) bool {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	text := append([]byte(id+"."+timestamp+"."), body...)
	for _, entry := range strings.Fields(header.Get("webhook-signature")) {
		scheme, encoded, _ := strings.Cut(entry, ",")
		signature, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			continue
		}
		for _, key := range r.keys {
			if key.scheme == scheme && key.hasSigned(signature, text) {
				return true
			}
		}
	}
	return false
}

// store writes an event to disk under the id of its message; fs.ErrExist means that it is there already. In a database:
// an INSERT with a unique key.
func (r *receiver) store(id string, body []byte) (string, error) {
	sum := sha256.Sum256([]byte(id))
	name := hex.EncodeToString(sum[:])
	file, err := os.CreateTemp(r.events, ".")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err := file.Write(body); err != nil {
		return "", err
	}
	if err := file.Sync(); err != nil {
		return "", err
	}
	return name, os.Link(file.Name(), filepath.Join(r.events, name))
}

func (r *receiver) receive(request *http.Request) int {
	if request.Method != http.MethodPost {
		return http.StatusMethodNotAllowed
	}
	body, err := io.ReadAll(io.LimitReader(request.Body, bodyMaxBytes+1))
	if err != nil {
		return http.StatusBadRequest
	}
	if len(body) > bodyMaxBytes {
		return http.StatusRequestEntityTooLarge
	}
	if !r.isValid(request.Header, body) {
		fmt.Println("refused a request: no key of WEBHOOK_KEYS has signed it in the last five minutes")
		return http.StatusUnauthorized
	}
	fmt.Println("verified", request.Header.Get("webhook-id"))
	name, err := r.store(request.Header.Get("webhook-id"), body)
	if errors.Is(err, fs.ErrExist) {
		return http.StatusOK
	}
	if err != nil {
		// It is not stored: then it is sent again.
		return http.StatusInternalServerError
	}
	go func() { r.work <- name }()
	return http.StatusAccepted
}

// works handles one event after the other.
func (r *receiver) works() {
	for name := range r.work {
		path := filepath.Join(r.events, name)
		body, err := os.ReadFile(path)
		if err == nil {
			err = handle(body)
		}
		if err == nil {
			err = os.WriteFile(path+".done", nil, 0o600)
		}
		if err != nil {
			fmt.Println("it is tried again at the next start:", name, err)
		}
	}
}

// unfinished are the events that were stored and not handled.
func (r *receiver) unfinished() ([]string, error) {
	entries, err := os.ReadDir(r.events)
	var names []string
	for _, entry := range entries {
		_, isNew := os.Stat(filepath.Join(r.events, entry.Name()+".done"))
		if len(entry.Name()) == 2*sha256.Size && errors.Is(isNew, fs.ErrNotExist) {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

func variable(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func main() {
	r := &receiver{events: variable("EVENTS", "events"), work: make(chan string)}
	for _, text := range strings.Fields(os.Getenv("WEBHOOK_KEYS")) {
		key, err := readKey(text)
		if err != nil {
			log.Fatal("WEBHOOK_KEYS ", err)
		}
		r.keys = append(r.keys, key)
	}
	if len(r.keys) == 0 {
		log.Fatal("WEBHOOK_KEYS has no key: set it to the secret of the sender, whsec_…, or its public key, whpk_…")
	}
	if err := os.MkdirAll(r.events, 0o700); err != nil {
		log.Fatal(err)
	}
	names, err := r.unfinished()
	if err != nil {
		log.Fatal(err)
	}
	go r.works()
	go func() {
		for _, name := range names {
			r.work <- name
		}
	}()
	listener, err := net.Listen("tcp", "127.0.0.1:"+variable("PORT", "9190"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s/\n", listener.Addr())
	server := http.Server{ReadTimeout: 30 * time.Second, Handler: http.HandlerFunc(
		func(response http.ResponseWriter, request *http.Request) { response.WriteHeader(r.receive(request)) },
	)}
	log.Fatal(server.Serve(listener))
}
