/** Log in and out: the part of the header, and the dialog. */
import { closeDialog, openDialog, problem } from './dialog.js';
import { html, render } from './lib/lit-html.js';
import { canLogIn, logIn, logOut, person, userDomain } from './session.js';

const account = document.getElementById('account');

export function drawAccount() {
  account.hidden = !canLogIn();
  render(
    person() === null
      ? html`<button type="button" @click=${open}>Log in</button>`
      : html`<span>${person()}</span> <button type="button" @click=${logOut}>Log out</button>`,
    account,
  );
}

const field = (label, name, type, more = {}) =>
  html`<label class="field">${label}<input name=${name} type=${type} required maxlength="1024" spellcheck="false"
    autocapitalize="none" autocomplete=${more.autocomplete ?? 'off'} .defaultValue=${more.value ?? ''}></label>`;

const methods = {
  password: () => html`${field('User name', 'userName', 'text', { autocomplete: 'username' })}
    ${field('Domain', 'userDomainName', 'text', { value: userDomain() })}
    ${field('Password', 'password', 'password', { autocomplete: 'current-password' })}`,
  applicationCredential: () => html`${field('Id', 'id', 'text')}${field('Secret', 'secret', 'password')}`,
};

function open() {
  let method = 'password';
  let error = null;
  let busy = false;
  const dialog = openDialog();
  const choose = (event) => {
    method = event.target.value;
    error = null;
    draw();
  };
  const submit = async (event) => {
    event.preventDefault();
    if (busy) return;
    const given = Object.fromEntries(new FormData(event.target));
    busy = true;
    error = null;
    draw();
    try {
      await logIn(given);
      dialog.close();
    } catch (refused) {
      busy = false;
      error = refused.message;
      draw();
    }
  };
  const draw = () =>
    dialog.draw(
      'Log in',
      html`<form @submit=${submit}>
        <label class="field">With<select name="method" @change=${choose}>
          <option value="password">OpenStack user and password</option>
          <option value="applicationCredential">Application credential</option></select></label>
        ${methods[method]()}
        <p class="dim">Keystone checks them. Kronos keeps neither a password nor a secret.</p>
        ${problem(error)}
        <p class="commands"><button type="submit" aria-disabled=${busy}>Log in</button>
          <button type="button" @click=${closeDialog}>Go back</button></p>
      </form>`,
    );
  draw();
}
