// Loaded before the program of an image. The kernel gives the first process of a container no default action for
// signals: without this, one that comes before the program listens for it would be lost, and Ctrl-C would do nothing.
const numbers = { SIGINT: 2, SIGTERM: 15 };
for (const [signal, number] of Object.entries(numbers))
  process.on(signal, () => {
    if (process.listenerCount(signal) === 1) process.exit(128 + number);
  });
